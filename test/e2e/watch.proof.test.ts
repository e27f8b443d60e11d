/** `serve --watch` and configuration files that change in every way that files do. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { temporaryFolder } from '../support/filter-folder.ts';
import { runCommand } from '../support/run-command.ts';
import { SOON, serve } from './serving.ts';

const DAY = 86_400;

/** A folder as Kubernetes mounts a ConfigMap: files are links into `..data`, which is a link that is swapped. */
function mountedFolder(limit: number) {
  const folder = join(temporaryFolder(), 'blazar.conf.d');
  let version = 0;
  const swap = (seconds: number) => {
    version += 1;
    const next = `..version-${version}`;
    mkdirSync(join(folder, next), { recursive: true });
    writeFileSync(join(folder, next, '50-limits.conf'), `[enforcement]\nmax_lease_duration = ${seconds}\n`);
    symlinkSync(next, join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
  };
  swap(limit);
  symlinkSync('..data/50-limits.conf', join(folder, '50-limits.conf'));
  return { folder, swap };
}

it('serve --watch reloads whichever way its files change, and changes nothing for a mistake', async () => {
  const conf = join(temporaryFolder(), 'blazar.conf');
  const base = '[service]\nport = 0\n[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n';
  writeFileSync(conf, base);
  const { folder, swap } = mountedFolder(DAY);
  const sources = ['--config-file', conf, '--config-dir', folder];
  const { url, output, statusFor } = await serve(['--watch', ...sources]);
  const ready = async () => {
    const answer = await fetch(`${url}/readyz`);
    const { generation, problems } = (await answer.json()) as { generation: number; problems: string[] };
    return { status: answer.status, generation, problems };
  };
  const allows = async (seconds: number, project?: string) => (await statusFor(seconds, project)) === 204;
  const takenOver = (generation: number) =>
    vi.waitFor(async () => expect(await ready()).toEqual({ status: 200, generation, problems: [] }), SOON);
  expect([await allows(DAY), await allows(DAY + 1)]).toEqual([true, false]);

  // In place.
  writeFileSync(conf, `${base}exempt_projects = weather\n`);
  await takenOver(2);
  expect([await allows(DAY + 1), await allows(DAY + 1, 'weather')]).toEqual([false, true]);

  // As Kubernetes does.
  swap(2 * DAY);
  await takenOver(3);
  expect([await allows(2 * DAY), await allows(2 * DAY + 1)]).toEqual([true, false]);

  // A further file, with a mistake.
  const further = join(folder, '90-further.conf');
  writeFileSync(further, '[enforcement]\nmax_lease_duratoin = 60\n');
  await expect.poll(async () => (await ready()).status).toBe(503);
  const validated = await runCommand(['config', 'validate', ...sources]);
  const words = validated.stderr.trimEnd().replace(/^error: /, '');
  expect(words).toContain(`${further}:2: [enforcement] max_lease_duratoin: unknown option`);
  const named = `${further}:2: [enforcement] max_lease_duratoin: not valid`;
  expect(await ready()).toEqual({ status: 503, generation: 3, problems: [named] });
  expect(await allows(2 * DAY)).toBe(true);

  // Mended in place: the folder itself does not change.
  writeFileSync(further, '[enforcement]\nmax_lease_duration = 60\n');
  await takenOver(4);
  expect([await allows(60), await allows(61)]).toEqual([true, false]);

  // Gone, and back by a rename.
  rmSync(conf);
  await expect.poll(async () => (await ready()).status).toBe(503);
  expect((await ready()).problems).toEqual(['configuration: not valid']);
  expect([await allows(60), await allows(61)]).toEqual([true, false]);
  writeFileSync(`${conf}.new`, base);
  renameSync(`${conf}.new`, conf);
  await takenOver(5);

  const lines = output()
    .stderr.trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).msg as string);
  expect(lines.filter((line) => line === words)).toHaveLength(1);
  expect(lines.filter((line) => line.startsWith('configuration not reloaded'))).toHaveLength(2);
  expect(lines.filter((line) => line === 'configuration reloaded')).toHaveLength(4);
});
