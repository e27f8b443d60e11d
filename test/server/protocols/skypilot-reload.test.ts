/** A reload changes policies, path and tokens, or nothing. */
import { rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { runServiceOnFile } from '../../support/running-service.ts';
import { body, inside, policySource } from '../../support/skypilot.ts';
import { PATH } from '../../support/skypilot-service.ts';

const written = (section: string) =>
  `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n[service]\nport = 0\n[skypilot]\nisolation = none\n${section}\n`;

async function onFile(section: string) {
  const { change, ...running } = await runServiceOnFile(written(section));
  /** The task that comes back from a path, or the status. */
  const ask = async (path = PATH) => {
    const { status, text } = await running.post(path, body());
    return status === 200 ? inside(text).task : status;
  };
  return { ...running, change: (next: string) => change(written(next)), ask };
}

/** Writes the file of a policy, changed so many seconds after its first version. */
function sourceFile(folder: string, name: string, source: string, seconds = 0): string {
  const path = join(folder, `${name}.js`);
  writeFileSync(path, source);
  const changed = 1_790_000_000 + seconds;
  utimesSync(path, changed, changed);
  return `${path}#${name}`;
}

function policyFile(folder: string, name: string, text: string, seconds?: number): string {
  return sourceFile(folder, name, policySource(name, text), seconds);
}

const named = (name: string) => `name: ${name}\nrun: hostname\n`;
const SET = (name: string) => `if (task.name === 'tiny') task.name = '${name}';`;

describe('a reload', () => {
  it('changes the policies, the path and the tokens', async () => {
    const folder = temporaryFolder();
    const one = policyFile(folder, 'OnePolicy', SET('one'));
    const two = policyFile(folder, 'TwoPolicy', SET('two'));
    const { ask, change } = await onFile(`admin_policies = ${one}`);
    expect(await ask()).toBe(named('one'));

    expect(await change(`admin_policies = ${two}\ntokens = secret-0123456789abcdef`)).toBe(true);
    expect(await ask()).toBe(401);
    expect(await ask(`${PATH}?token=secret-0123456789abcdef`)).toBe(named('two'));

    expect(await change(`admin_policies = ${one}, ${two}\npath = /sky\ntokens = next-0123456789abcdef`)).toBe(
      true,
    );
    expect(await ask()).toBe(404);
    expect(await ask('/sky?token=secret-0123456789abcdef')).toBe(401);
    expect(await ask('/sky?token=next-0123456789abcdef')).toBe(named('one'));

    expect(await change('')).toBe(true);
    expect(await ask('/sky?token=next-0123456789abcdef')).toBe(404);

    expect(await change(`admin_policies = ${one}`)).toBe(true);
    expect(await ask()).toBe(named('one'));
  });

  it('reloads a policy whose file changed', async () => {
    const folder = temporaryFolder();
    const section = `admin_policies = ${policyFile(folder, 'OnePolicy', SET('first'))}`;
    const { ask, change, service } = await onFile(section);
    expect(await ask()).toBe(named('first'));
    policyFile(folder, 'OnePolicy', SET('second'), 10);
    expect(await ask()).toBe(named('first'));
    expect(await service.reload()).toBe(true);
    expect(await ask()).toBe(named('second'));
    policyFile(folder, 'OnePolicy', SET('third'), 20);
    expect(await change(section)).toBe(true);
    expect(await ask()).toBe(named('third'));
  });

  it('keeps the policies, the path and the tokens if there is an error', async () => {
    const folder = temporaryFolder();
    const section = `admin_policies = ${policyFile(folder, 'OnePolicy', SET('first'))}\ntokens = secret-0123456789abcdef`;
    const { ask, change, service, request, logger } = await onFile(section);
    let read = 0;
    const stillThere = async () => {
      expect(await ask(`${PATH}?token=secret-0123456789abcdef`)).toBe(named('first'));
      expect(await ask(`${PATH}?token=other-0123456789abcdef`)).toBe(401);
      expect((await request('/readyz')).status).toBe(503);
      const said = JSON.stringify(logger.lines.slice(read));
      read = logger.lines.length;
      return said;
    };
    const noRegistry = { extra: "x = (() => { throw new Error('no registry'); })();" };
    const broken = [
      ["import 'node:nowhere';", 'could not be loaded'],
      ["throw new Error('out of order');", 'out of order'],
      ['export const OnePolicy = 7;', 'exports no class OnePolicy'],
      ['export class OnePolicy {}', 'exports no class OnePolicy that extends AdminPolicy'],
      [policySource('OnePolicy', '', noRegistry), 'OnePolicy could not be set up: no registry'],
    ] as const;
    for (const [index, [source, said]] of broken.entries()) {
      sourceFile(folder, 'OnePolicy', source, 30 + index);
      expect(await service.reload(), source).toBe(false);
      expect(await stillThere()).toContain(said);
    }
    rmSync(join(folder, 'OnePolicy.js'));
    expect(await service.reload()).toBe(false);
    await stillThere();
    expect(await change('admin_policies = Nowhere\ntokens = other-0123456789abcdef')).toBe(false);
    expect(await stillThere()).toContain('no included policy has this name');
    expect(await change(`admin_policies = \npath = no-path\ntokens = other-0123456789abcdef`)).toBe(false);
    await stillThere();
    policyFile(folder, 'OnePolicy', SET('mended'), 99);
    expect(await change(section)).toBe(true);
    expect(await ask(`${PATH}?token=secret-0123456789abcdef`)).toBe(named('mended'));
    expect((await request('/readyz')).status).toBe(200);
    expect(JSON.stringify(logger.lines)).not.toContain('secret-0123456789abcdef');
  });

  it('lets a request finish with its policies, and closes them afterwards', async () => {
    const heard: string[] = [];
    let open = () => {};
    vi.stubGlobal('heard', heard);
    vi.stubGlobal('authenticator', () => {
      heard.push('asked');
      return new Promise<void>((go) => {
        open = go;
      });
    });
    const folder = temporaryFolder();
    const waiting = sourceFile(
      folder,
      'WaitingPolicy',
      policySource(
        'WaitingPolicy',
        "return authenticator().then(() => { task.name = 'old'; return new MutatedUserRequest(task, config); });",
        { extra: "close() { heard.push('closed'); }" },
      ),
    );
    const { ask, change } = await onFile(`admin_policies = ${waiting}`);
    const first = ask();
    await expect.poll(() => heard).toEqual(['asked']);
    const next = policyFile(folder, 'NextPolicy', SET('new'));
    expect(await change(`admin_policies = ${next}`)).toBe(true);
    expect(await ask()).toBe(named('new'));
    expect(heard).toEqual(['asked']);
    open();
    expect(await first).toBe(named('old'));
    await expect.poll(() => heard).toEqual(['asked', 'closed']);
  });
});
