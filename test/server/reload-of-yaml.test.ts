/** A configuration in YAML that is read again: a mistake, or a file cut off, leaves the last good one deciding. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startService } from '../../src/server/service.ts';
import { temporaryFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { createLasting } from '../support/requests.ts';
import { runServiceOn } from '../support/running-service.ts';

const yaml = (limit: number | string) =>
  `enforcement:\n  enabled_filters: [MaxLeaseDurationFilter]\n  max_lease_duration: ${limit}\nservice:\n  port: 0\n`;
const HOUR = JSON.stringify(createLasting(3600));

async function onFile() {
  const conf = temporaryFile('blazar.yaml', yaml(3600));
  const running = await runServiceOn({ environment: {}, configFiles: [conf], projectFolder: null });
  const status = async (path: string, body: unknown) => (await running.post(path, body)).status;
  return {
    ...running,
    conf,
    change: (text: string) => {
      writeFileSync(conf, text);
      return running.service.reload();
    },
    problems: async () => (await running.request('/readyz')).json,
    allowed: async () => (await status('/check-create', HOUR)) === 204,
  };
}

describe('a reload of YAML', () => {
  it('takes over', async () => {
    const { change, allowed } = await onFile();
    expect(await allowed()).toBe(true);
    expect(await change(yaml(3599))).toBe(true);
    expect(await allowed()).toBe(false);
  });

  it.each([
    ['no YAML', yaml('{'), /blazar\.yaml:\d+: expected YAML: /],
    ['cut off within a text', yaml('"36'), /blazar\.yaml:\d+: expected YAML: /],
    ['of another shape', '- enforcement', /blazar\.yaml:1: expected sections/],
    ['empty', '', /blazar\.yaml: it is empty, and was not; a restart takes it as it is/],
    ['a comment', '# max_lease_duration: 1\n', /it is empty, and was not/],
    ['an empty mapping', '{}', /it is empty, and was not/],
    ['sections without options', 'enforcement:\nservice: {}\n', /it is empty, and was not/],
  ])('that is %s is refused, and the last good configuration stays', async (_, text, problem) => {
    const { change, allowed, problems, logger } = await onFile();
    expect(await change(text)).toBe(false);
    expect(await allowed()).toBe(true);
    expect(JSON.stringify(await problems())).toMatch(problem);
    expect(logger.lines.some(({ message }) => problem.test(message))).toBe(true);
    expect(await change(yaml(3599))).toBe(true);
    expect(await allowed()).toBe(false);
  });

  it('that finds a file of the project which is not to be trusted is refused too', async () => {
    const projectFolder = temporaryFolder();
    const conf = temporaryFile('blazar.yaml', yaml(3600));
    const { service, post } = await runServiceOn({ environment: {}, configFiles: [conf], projectFolder });
    const file = join(projectFolder, '.blazar-enforcement.yaml');
    writeFileSync(file, '{enforcement: {max_lease_duration: 1}}');
    chmodSync(file, 0o666);
    expect(await service.reload()).toBe(false);
    expect((await post('/check-create', HOUR)).status).toBe(204);
    chmodSync(file, 0o644);
    expect(await service.reload()).toBe(true);
    expect((await post('/check-create', HOUR)).status).toBe(403);
  });
});

it('at the start what is no YAML starts nothing, and is no empty configuration', async () => {
  const conf = temporaryFile('blazar.yaml', yaml('{'));
  await expect(startService({ environment: {}, configFiles: [conf], projectFolder: null })).rejects.toThrow(
    /^.*blazar\.yaml:\d+: expected YAML: [^\n]*$/,
  );
});
