import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { valueAt } from '../../../src/base/yaml/tree.ts';
import { SERVER_KEYS, TASK_KEYS } from '../../../src/skypilot/config/config-schema.ts';
import { formatKeys } from '../../../src/skypilot/config/permitted-keys.ts';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { folderOf } from '../../support/filter-folder.ts';
import type { CommandResult } from '../../support/run-command.ts';
import { refused } from '../../support/run-command.ts';
import { config } from '../../support/skypilot-config.ts';

function configIn(folder: string, args: readonly string[], env: Record<string, string> = {}) {
  // Node.js asks the operating system for the home folder, and not `process.env` as it is replaced for a command.
  vi.stubEnv('HOME', join(folder, 'home'));
  return runProgramInProcess(['skypilot', 'config', ...args], {
    cwd: folder,
    env: { SKYPILOT_GLOBAL_CONFIG: '', SKYPILOT_PROJECT_CONFIG: '', ...env },
  });
}

const valueIn = ({ stdout }: CommandResult) => YamlDocument.parse(stdout).value;

/** A configuration whose pod may have any keys. */
const pod = (members: string) => `kubernetes: {pod_config: {${members}}}\n`;
const podOf = (result: CommandResult) => valueAt(valueIn(result), ['kubernetes', 'pod_config']);

/** A site, a user, a folder, a task: each wants something else of the same cluster. */
const SITE = {
  'server.yaml': `admin_policy: https://policy.example.net/review?token=door-key
allowed_clouds: [kubernetes, gcp]
workspaces:
  lab: {}
kubernetes:
  provision_timeout: 300
  allowed_contexts:
    - north
    - south
  pod_config:
    spec:
      priorityClassName: low
      tolerations:
        - key: shared
`,
  'user.yaml': `allowed_clouds: [aws]
kubernetes:
  pod_config:
    spec:
      priorityClassName: middle
      tolerations:
        - key: mine
`,
  'project.yaml': `admin_policy: none.Of
kubernetes:
  allowed_contexts:
    - north
active_workspace: lab
`,
  'task.yaml': `name: train
run: python train.py
config:
  kubernetes:
    provision_timeout: 900
    pod_config:
      spec:
        tolerations:
          - key: big
`,
};
/** As every warning about dropped keys ends. */
const SERVER_ONLY = `; only the server may set ${formatKeys(SERVER_KEYS)}`;
const KUBERNETES_KEYS = formatKeys(TASK_KEYS.filter(([name]) => name === 'kubernetes'));

const FILES = ['server', 'user', 'project', 'task'].flatMap((level) => [`--${level}`, `${level}.yaml`]);

describe('skypilot config', () => {
  it('merges server, user, project, task and command line, and explains the result', async () => {
    const pair = 'kubernetes.provision_timeout=1200';
    const { code, stdout, stderr } = await configIn(folderOf(SITE), [
      ...FILES,
      '--config',
      pair,
      '--explain',
    ]);
    expect(stderr).toBe(
      `warning: 2 keys that only the server may set are ignored: allowed_clouds (user user.yaml:1), admin_policy (project project.yaml:1)${SERVER_ONLY}\n`,
    );
    const rows = stdout.split('\n').map((row) => row.split(/ {2,}/));
    expect(rows[0]).toEqual(['KEY', 'VALUE', 'SOURCE', 'OVERRIDES']);
    const why = 'only the server may set this key, and it has another value or none';
    for (const row of [
      ['admin_policy', '"https://policy.example.net/review?token=****"', 'server server.yaml:1'],
      [
        'kubernetes.provision_timeout',
        '1200',
        '--config kubernetes.provision_timeout',
        'task task.yaml:5, server server.yaml:6',
      ],
      ['kubernetes.allowed_contexts', '["north"]', 'project project.yaml:3', 'server server.yaml:7'],
      ['kubernetes.pod_config.spec.tolerations[2].key', '"big"', 'task task.yaml:9'],
      ['DROPPED', 'SOURCE', 'WHY'],
      ['allowed_clouds', 'user user.yaml:1', why],
      ['admin_policy', 'project project.yaml:1', why],
    ]) {
      expect(rows).toContainEqual(row);
    }
    expect(code).toBe(0);
  });

  it('prints the same as YAML, as JSON, and as JSON with the sources', async () => {
    const yaml = await config(SITE, ...FILES);
    const json = await config(SITE, ...FILES, '--format', 'json');
    const explained = await config(SITE, ...FILES, '--format', 'json', '--explain');
    const value = JSON.parse(json.stdout) as unknown;
    expect(value).toMatchObject({
      kubernetes: {
        provision_timeout: 900,
        pod_config: { spec: { tolerations: [{ key: 'shared' }, {}, {}] } },
      },
    });
    expect(valueIn(yaml)).toEqual(value);
    expect(JSON.parse(explained.stdout)).toContainEqual({
      key: 'kubernetes.allowed_contexts',
      value: ['north'],
      source: 'project project.yaml:3',
      beats: ['server server.yaml:7'],
    });
    expect([yaml.code, json.code, explained.code]).toEqual([0, 0, 0]);
  });
});

it('the default files are ~/.sky/config.yaml and .sky.yaml, if they exist', async () => {
  const places = {
    'home/.sky/config.yaml': pod('a: 1, b: 1'),
    '.sky.yaml': pod('b: 2'),
    'home/other.yaml': pod('a: 3, b: 3'),
  };
  const result = await configIn(folderOf(places), []);
  expect(podOf(result)).toEqual({ a: 1, b: 2 });
  expect(result).toMatchObject({ code: 0, stderr: '' });
});

describe('an error in a file or a flag', () => {
  const files = {
    'bad.yaml': 'a: 1\nb: "s3cret \\q"\n',
    'list.yaml': '# a list\n- s3cret\n',
    'list-over-none.yaml': 'kubernetes:\n  pod_config:\n    tolerations: [a]\n',
    'none.yaml': 'kubernetes:\n  pod_config:\n    tolerations: {a: 1}\n',
    'good.yaml': 'a: 1\n',
  };

  it.for<[string, string | RegExp]>([
    ['--server bad.yaml', /^error: bad\.yaml:2: expected YAML: .+\n$/],
    ['--user list.yaml', 'list.yaml:2: expected a mapping, such as "kubernetes:" with options below it'],
    ['--project nowhere.yaml', 'nowhere.yaml: could not be read: there is no such file'],
    [
      '--server none.yaml --user list-over-none.yaml',
      'list-over-none.yaml:3: kubernetes.pod_config.tolerations: expected no list, because the value that it overrides is a mapping',
    ],
    [
      '--config good.yaml --config a=1',
      '--config: good.yaml is a file, and a file must be the only --config',
    ],
    ['--config a=1 --config =s3cret', '--config: expected key=value, got nothing before "="'],
    ['--config a=[s3cret', /^error: --config: the value of a is not YAML .+\n$/],
  ])('ends with 2 and one sentence: %s', async ([line, message]) => {
    const result = await config(files, ...line.split(' '));
    expect(result).toEqual(refused(message));
    expect(result.stderr).not.toContain('s3cret');
  });
});

describe('secrets', () => {
  const files = {
    'server.yaml': `admin_policy: https://policy.example/p?token=s3cret
api_server: {endpoint: "https://lee:s3cret@api.example", service_account_token: s3cret}
kubernetes: {pod_config: {spec: {containers: [{name: a, env: [{name: HF_TOKEN, value: s3cret}]}]}}}
`,
  };

  it.for(['', '--explain', '--format json', '--format json --explain'])('are hidden: %s', async (flags) => {
    const args = ['--server', 'server.yaml', ...flags.split(' ').filter((flag) => flag !== '')];
    const hidden = await config(files, ...args);
    const shown = await config(files, ...args, '--show-secrets');
    expect(hidden.stdout + hidden.stderr).not.toContain('s3cret');
    expect(hidden.stdout.split('****')).toHaveLength(5);
    expect(shown.stdout.split('s3cret')).toHaveLength(5);
  });
});

it('what SkyPilot would refuse ends with 1, with the place of each mistake in each source, and shows the result', async () => {
  const files = {
    'server.yaml': 'aws:\n  vpc_name: v\n  not_a_field: 1\n',
    'user.yaml': 'kubernetes:\n  provison_timeout: 10\n',
    'project.yaml': 'gcp:\n  vpc_name: UPPER\n',
    'task.yaml': 'run: x\nconfig:\n  gcp:\n    vpc_name: [a]\n',
  };
  const { code, stdout, stderr } = await config(files, ...FILES, '--config', 'kubernetes.ports=nowhere');
  expect(
    stderr
      .trimEnd()
      .split('\n')
      .map((row) => row.split(': ').slice(0, 3).join(': ')),
  ).toEqual([
    'error: server.yaml:3: aws.not_a_field',
    'error: user.yaml:2: kubernetes.provison_timeout',
    'error: project.yaml:2: gcp.vpc_name',
    'error: --config kubernetes.ports: kubernetes.ports',
    'error: task.yaml:4: config.gcp.vpc_name',
  ]);
  expect(stderr).toContain('provision_timeout');
  expect(code).toBe(1);
  expect(stdout).toContain('not_a_field: 1');
});

it('names what is dropped with its reason and without its value, in the table and in JSON', async () => {
  const files = {
    'server.yaml': 'slurm: {cluster_configs: {a: {}}}\n',
    'user.yaml': 'slurm: s3cret\nadmin_policy: https://h/?token=s3cret\n',
    'task.yaml': 'config: {db: s3cret}\n',
  };
  const args = [...FILES.map((file) => file.replace('project.yaml', 'server.yaml')), '--explain'];
  const table = await config(files, ...args);
  const json = await config(files, ...args, '--format', 'json');
  const entries = (JSON.parse(json.stdout) as Record<string, string>[]).filter(({ dropped }) => dropped);
  const around = 'its value would take slurm.cluster_configs away from the server';
  expect(entries).toEqual([
    expect.objectContaining({ key: '(the file)', source: 'project server.yaml', dropped: 'file' }),
    expect.objectContaining({ key: 'admin_policy', source: 'user user.yaml:2', dropped: 'server' }),
    { key: 'slurm', source: 'user user.yaml:1', dropped: 'around', why: around },
    expect.objectContaining({ key: 'db', source: 'task task.yaml:1', dropped: 'task' }),
  ]);
  const rows = table.stdout
    .split(/^DROPPED .*\n/m)[1]
    ?.trimEnd()
    .split('\n');
  expect(rows?.map((row) => row.split(/ {2,}/))).toEqual(
    entries.map(({ key, source, why }) => [key, source, why]),
  );
  for (const { code, stdout, stderr } of [table, json]) {
    expect(stdout + stderr).not.toContain('s3cret');
    expect(code).toBe(1);
  }
});

it('hostile text cannot control the terminal or change prototypes', async () => {
  // In YAML: the screen is erased, in two ways, and lines end where they should not.
  const hostile = '"x\\e[2J\\x9b31m\\x7f\\L\\ny"';
  const files = {
    'server.yaml': `__proto__: {polluted: ${hostile}}\n? ${hostile}\n: 1\ntext: ${hostile}\n`,
    'task.yaml': `config:\n  ? ${hostile}\n  : 1\nexperimental:\n  ? ${hostile}\n  : 1\n`,
  };
  const args = ['--server', 'server.yaml', '--task', 'task.yaml'];
  const yaml = await config(files, ...args);
  const table = await config(files, ...args, '--explain');
  const json = await config(files, ...args, '--format', 'json');
  for (const { code, stdout, stderr } of [yaml, table, json]) {
    expect(code).toBe(1);
    expect(stdout + stderr).not.toMatch(/(?!\n)[\p{Cc}\u2028\u2029]/u);
    for (const row of stderr.trimEnd().split('\n')) {
      expect(row).toMatch(/^error: /);
    }
    expect(stdout).toContain('__proto__');
  }
  expect(JSON.stringify(valueIn(yaml))).toBe(JSON.stringify(JSON.parse(json.stdout)));
});

it('a pipeline has a configuration for each task, and reports the errors of each', async () => {
  const FILES = {
    'server.yaml': 'kubernetes: {provision_timeout: 300}\n',
    'pipeline.yaml': `name: chain
---
name: first
config: {kubernetes: {provision_timeout: 1}}
---
---
run: x
config: {kubernetes: {dws: {enabled: true}, namespace: x}}
`,
  };
  const ARGS = ['--server', 'server.yaml', '--task', 'pipeline.yaml'];
  const { code, stdout, stderr } = await config(FILES, ...ARGS);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `error: pipeline.yaml:8: kubernetes.namespace: a task may not set this key; it may set ${KUBERNETES_KEYS}\n`,
  });
  expect(stdout).toContain('--- # task 1 of 2: first\n');
  expect(stdout).toContain('--- # task 2 of 2\n');
  expect(YamlDocument.parseStream(stdout).map(({ value }) => value)).toEqual([
    { kubernetes: { provision_timeout: 1 } },
    { kubernetes: { provision_timeout: 300, dws: { enabled: true } } },
  ]);
  const json = await config(FILES, ...ARGS, '--format', 'json');
  expect(JSON.parse(json.stdout)).toEqual([
    { task: 1, of: 2, name: 'first', config: { kubernetes: { provision_timeout: 1 } } },
    {
      task: 2,
      of: 2,
      name: null,
      config: { kubernetes: { provision_timeout: 300, dws: { enabled: true } } },
    },
  ]);
  const explained = await config(FILES, ...ARGS, '--explain');
  expect(explained.stdout).toMatch(
    /task 1 of 2: first\nKEY.*\nkubernetes\.provision_timeout +1 +task pipeline\.yaml:4/,
  );
  expect(explained.stdout).toMatch(/\n\ntask 2 of 2\nKEY.*\nkubernetes\.provision_timeout +300 +server/);
});

const SERVER = 'allowed_clouds: [aws, azur]\nkubernetes:\npod_config:\n  spec: {}\n';
const TASK = 'name: a\nresources:\n  acelerators: A100\n';
const PROBLEMS = [
  'server.yaml:1: allowed_clouds[1]: expected a cloud (aws, azure, gcp, ibm, lambda, scp, oci, kubernetes, runpod, vast and 19 more), got "azur"; the nearest right one is "azure"',
  'server.yaml:3: pod_config: unknown key here; it belongs below kubernetes: check the indentation',
  'task.yaml:3: resources.acelerators: unknown key; the nearest right key is "accelerators"',
];

/** The command with these files, and no others. */
async function configOf(files: { 'server.yaml': string; 'task.yaml': string }, ...flags: string[]) {
  const { code, stdout, stderr } = await config(
    files,
    '--server',
    'server.yaml',
    '--task',
    'task.yaml',
    ...flags,
  );
  return { code, stdout, problems: stderr.trim().split('\n') };
}

const validated = (...flags: string[]) => configOf({ 'server.yaml': SERVER, 'task.yaml': TASK }, ...flags);

it.for([
  ['error', 1, PROBLEMS.map((problem) => `error: ${problem}`)],
  ['warning', 0, PROBLEMS.map((problem) => `warning: ${problem}`)],
  ['ignore', 0, ['']],
] as const)(
  '--validation says what does not match the schema, with file and line, with --get too: %s',
  async ([severity, code, problems]) => {
    const shown = await validated('--validation', severity);
    expect(shown).toEqual({ code, stdout: expect.stringContaining('pod_config:\n  spec: {}'), problems });
    const value = await validated('--get', 'allowed_clouds', '--validation', severity);
    expect(value).toEqual({ code, stdout: '- aws\n- azur\n', problems });
  },
);
