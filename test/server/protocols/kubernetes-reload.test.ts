/** Scheduling policies that are read again: by a reload, and when somebody watches them. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { temporaryFolder } from '../../support/filter-folder.ts';
import {
  ADMISSION,
  asking,
  creating,
  EVERYBODY,
  grant,
  policiesForAll,
  VALIDATION,
} from '../../support/kubernetes-service.ts';
import { metric } from '../../support/metric.ts';
import { runServiceOnFile } from '../../support/running-service.ts';

const allowing = (disk: string) =>
  policiesForAll({ disks: { allowed: { nodeSelectors: { disk: [disk] } } } });
const MISTAKEN = 'kind: SchedulingPolicy\nmetadata: {name: disks}\nspec:\n  allowed:\n    colour: red\n';
const SOON = { timeout: 120_000, interval: 20 };

const written = (section: string) => `[service]\nport = 0\n[kubernetes]\n${section}\n`;

/** A service of a configuration file that names these files or folders of a folder; `policies.yaml` allows ssd. */
async function onFile({ watch = false, named = ['policies.yaml'], folder = temporaryFolder() } = {}) {
  const file = join(folder, 'policies.yaml');
  writeFileSync(file, allowing('ssd'));
  const naming = (...names: readonly string[]) =>
    written(`scheduling_policies = ${names.map((name) => join(folder, name)).join(', ')}`);
  const running = await runServiceOnFile(naming(...named), { watch, pollMs: 20 });
  const ask = asking(running);
  /** Which of the disks may be asked for; the status where there is no answer to that. */
  const allowed = async () => {
    const disks = ['ssd', 'hdd', 'tape'];
    const answers = await Promise.all(disks.map((disk) => ask(creating({ nodeSelector: { disk } }))));
    const [{ status } = { status: 0 }] = answers;
    return status === 200 ? disks.filter((_, index) => answers[index]?.allowed) : status;
  };
  const readiness = async () => ({ status: (await running.request('/readyz')).status });
  const said = () =>
    running.logger.lines.map(({ message }) => `${message.replaceAll(folder, '')}\n`).join('');
  return { ...running, ask, allowed, readiness, said, folder, file, naming };
}

describe('a reload', () => {
  it('removes and restores the paths with the policies, and describes them', async () => {
    const { change, post, request, allowed, naming } = await onFile();
    const described = async () => {
      const { json } = await request('/openapi.json');
      return Object.keys((json as { paths: object }).paths).filter((path) => path.startsWith('/kubernetes'));
    };
    expect(await described()).toEqual([ADMISSION, VALIDATION]);
    expect(await change(written('scheduling_policies ='))).toBe(true);
    for (const path of [ADMISSION, VALIDATION]) {
      expect((await post(path, creating())).status).toBe(404);
      expect((await request(path)).status).toBe(404);
    }
    expect(await described()).toEqual([]);
    expect(await change(naming('policies.yaml'))).toBe(true);
    expect(await allowed()).toEqual(['ssd']);
    expect(await described()).toEqual([ADMISSION, VALIDATION]);
  });

  it('refuses a file of policies that was cut off, which may lack what a policy requires', async () => {
    const { service, file, allowed, said } = await onFile();
    const anyDisk = `${grant(['disks'], EVERYBODY)}---
kind: SchedulingPolicy
metadata: {name: disks}
spec:
  allowed:
    nodeSelectors: {}
`;
    const other = `---\n${MISTAKEN.replace('disks', 'others').replace('colour: red', 'nodeSelectors: {}')}`;
    writeFileSync(file, `${anyDisk}  required:\n    nodeSelectors: {disk: [ssd]}\n${other}`);
    await expect(service.reload()).resolves.toBe(true);
    expect(await allowed()).toEqual(['ssd']);
    for (const text of [anyDisk, anyDisk.trimEnd(), `# Mine.\n${anyDisk}`.trimEnd()]) {
      writeFileSync(file, text);
      await expect(service.reload()).resolves.toBe(false);
      expect(await allowed()).toEqual(['ssd']);
    }
    expect(said()).toContain('/policies.yaml: the end of the file is gone, within a document');
    expect(said()).toContain('/policies.yaml: the file no longer ends with a line break');
    writeFileSync(file, `${anyDisk}  required:\n    nodeSelectors: {disk: [ssd]}\n`);
    await expect(service.reload()).resolves.toBe(true);
    writeFileSync(file, `# Mine.\n${anyDisk}`);
    await expect(service.reload()).resolves.toBe(true);
    expect(await allowed()).toEqual(['ssd', 'hdd', 'tape']);
  });

  it('names the policies that were removed whole, in their document or with their file', async () => {
    const { service, file, folder, said, logger } = await onFile({ named: [''] });
    const policy = (name: string) =>
      `kind: SchedulingPolicy\nmetadata: {name: ${name}}\nspec: {allowed: {}}\n`;
    const more = join(folder, 'more.yaml');
    writeFileSync(more, `${policy('one')}---\n${policy('two')}`);
    await expect(service.reload()).resolves.toBe(true);
    expect(said()).not.toContain('no longer in force');
    writeFileSync(more, policy('one'));
    await expect(service.reload()).resolves.toBe(true);
    rmSync(more);
    await expect(service.reload()).resolves.toBe(true);
    await expect(service.reload()).resolves.toBe(true);
    const gone = logger.lines.flatMap(({ fields }) => fields.gone ?? []);
    expect(gone).toEqual(['SchedulingPolicy two', 'SchedulingPolicy one']);
    rmSync(file);
    await expect(service.reload()).resolves.toBe(false);
    expect(said()).toContain('no *.yaml, *.yml or *.json file in this folder');
  });
});

describe('watched policies', () => {
  it('are read again when a file of a folder appears, changes and goes', async () => {
    const { allowed, folder, file } = await onFile({ watch: true, named: [''] });
    const more = (name: string, disk: string) =>
      writeFileSync(
        join(folder, name),
        policiesForAll({ [name]: { allowed: { nodeSelectors: { disk: [disk] } } } }),
      );
    more('more.yml', 'hdd');
    await expect.poll(allowed).toEqual(['ssd', 'hdd']);
    more('more.yml', 'tape');
    await expect.poll(allowed).toEqual(['ssd', 'tape']);
    rmSync(file);
    await expect.poll(allowed).toEqual(['tape']);
  });

  it('stay in force while there is an error or a file is missing', async () => {
    const { allowed, file, readiness, said, request } = await onFile({ watch: true });
    writeFileSync(file, MISTAKEN);
    await expect.poll(async () => (await readiness()).status).toBe(503);
    expect(said()).toContain('/policies.yaml:5: spec.allowed.colour: ');
    expect(await allowed()).toEqual(['ssd']);
    rmSync(file);
    await expect.poll(said).toContain('/policies.yaml: could not be read');
    expect(await allowed()).toEqual(['ssd']);
    mkdirSync(file);
    writeFileSync(join(file, 'a.yaml'), allowing('hdd'));
    await expect.poll(allowed).toEqual(['hdd']);
    expect(await readiness()).toMatchObject({ status: 200 });
    const { text } = await request('/metrics');
    const reloads = (outcome: string) => metric(text, 'blazar_enforcement_reloads_total', { outcome });
    expect(reloads('applied')).toBe(1);
    expect(reloads('refused')).toBeGreaterThan(1);
  });

  it('are watched as soon as the configuration names them, even with an error', async () => {
    const { allowed, conf, folder, naming, said } = await onFile({ watch: true });
    const other = join(folder, 'other.yaml');
    writeFileSync(conf, naming('other.yaml'));
    await expect.poll(said).toContain('could not be read');
    // As above: a change between reading and watching is not seen, so write again until it is.
    await vi.waitFor(async () => {
      writeFileSync(other, MISTAKEN);
      const reported = () => expect(said()).toContain('other.yaml:5: ');
      await vi.waitFor(reported, { timeout: 3000 });
    }, SOON);
    expect(await allowed()).toEqual(['ssd']);
    writeFileSync(other, allowing('hdd'));
    await expect.poll(allowed).toEqual(['hdd']);
  });

  it('are not read again without --watch', async () => {
    const { allowed, file, folder } = await onFile();
    const watching = await onFile({ watch: true, folder });
    writeFileSync(file, allowing('hdd'));
    await expect.poll(watching.allowed).toEqual(['hdd']);
    expect(await allowed()).toEqual(['ssd']);
  });
});
