/** `skypilot config --validation`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { skypilotConfigCommand } from '../../../src/cli/skypilot/config.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';

const SERVER = 'allowed_clouds: [aws, azur]\nkubernetes:\npod_config:\n  spec: {}\n';
const TASK = 'name: a\nresources:\n  acelerators: A100\n';
const PROBLEMS = [
  'server.yaml:1: allowed_clouds[1]: expected a cloud (aws, azure, gcp, ibm, lambda, scp, oci, kubernetes, runpod, vast and 19 more), got "azur"; the nearest right one is "azure"',
  'server.yaml:3: pod_config: unknown key here; it belongs below kubernetes: check the indentation',
  'task.yaml:3: resources.acelerators: unknown key; the nearest right key is "accelerators"',
];

async function config(...flags: string[]) {
  return configOf({ server: SERVER, task: TASK }, ...flags);
}

async function configOf(texts: { server: string; task: string }, ...flags: string[]) {
  const folder = temporaryFolder();
  const paths = { server: join(folder, 'server.yaml'), task: join(folder, 'task.yaml') };
  writeFileSync(paths.server, texts.server);
  writeFileSync(paths.task, texts.task);
  const files = [
    '--server',
    paths.server,
    '--user',
    '/dev/null',
    '--project',
    '/dev/null',
    '--task',
    paths.task,
  ];
  const { code, stderr, stdout } = await runInProcess(skypilotConfigCommand(), [...files, ...flags]);
  return { code, stdout, problems: stderr.replaceAll(`${folder}/`, '').trim().split('\n') };
}

describe('skypilot config', () => {
  it('reports what does not match the schema, with file and line, and shows the result', async () => {
    const { code, stdout, problems } = await config();
    expect({ code, problems }).toEqual({ code: 1, problems: PROBLEMS.map((problem) => `error: ${problem}`) });
    expect(stdout).toContain('pod_config:\n  spec: {}');
  });

  it('warns with --validation warning', async () => {
    const { code, problems } = await config('--validation', 'warning');
    expect({ code, problems }).toEqual({
      code: 0,
      problems: PROBLEMS.map((problem) => `warning: ${problem}`),
    });
  });

  it('says nothing of it with --validation ignore', async () => {
    expect(await config('--validation', 'ignore')).toMatchObject({ code: 0, problems: [''] });
  });

  it.for([
    ['error', 1, PROBLEMS.map((problem) => `error: ${problem}`)],
    ['warning', 0, PROBLEMS.map((problem) => `warning: ${problem}`)],
    ['ignore', 0, ['']],
  ] as const)('does the same with --get: --validation %s', async ([severity, code, problems]) => {
    const result = await config('--get', 'allowed_clouds', '--validation', severity);
    expect(result).toEqual({ code, stdout: '- aws\n- azur\n', problems });
  });

  it('refuses dates that are not quoted where SkyPilot expects a text, wherever they are written', async () => {
    const texts = {
      server: 'kubernetes:\n  pod_config: {until: 2026-01-01}\naws:\n  labels:\n    until: 2026-01-01\n',
      task: 'envs: {UNTIL: 2026-01-01}\nname: 2026-01-01\nresources:\n  labels: {since: 2026-1-1 10:00:00}\n',
    };
    const { code, stdout, problems } = await configOf(texts, '--config', 'aws.vpc_name=2026-02-02');
    const expected = (where: string, date: string) =>
      `error: ${where}, got the date ${date}; for a text, write it in quotes`;
    expect({ code, problems }).toEqual({
      code: 1,
      problems: [
        expected('server.yaml:5: aws.labels.until: expected a string', '2026-01-01'),
        expected('--config aws.vpc_name: aws.vpc_name: expected a string or null', '2026-02-02'),
        expected('task.yaml:2: name: expected a string', '2026-01-01'),
        expected('task.yaml:4: resources.labels.since: expected a string', '2026-1-1 10:00:00'),
      ],
    });
    expect(stdout).toContain('vpc_name: "2026-02-02"');
  });

  it('refuses a file with a date that does not exist, which SkyPilot cannot read', async () => {
    const { code, problems } = await configOf({ server: 'a: 1\nb: 2026-02-29\n', task: '' });
    expect(code).toBe(2);
    expect(problems.join()).toContain('server.yaml:2: expected YAML:');
    expect(problems.join()).toContain('a date that does not exist');
  });
});
