import { describe, expect, it } from 'vitest';
import { printed, refused } from '../../support/run-command.ts';
import { config } from '../../support/skypilot-config.ts';

const FILES = {
  'server.yaml': `kubernetes:
  allowed_contexts: [east, west]
  provision_timeout: 600
  custom_metadata: {annotations: {note: token-of-the-pod}}
  pod_config:
    spec:
      tolerations:
        - key: gpu
      containers:
        - env: [{name: HF_TOKEN, value: token-of-the-pod}]
  context_configs:
    east:
      provision_timeout: 900
workspaces:
  lab: {}
`,
  'task.yaml': `name: train
config:
  kubernetes:
    provision_timeout: 30
`,
  'pipeline.yaml': `name: both
---
name: one
config: {kubernetes: {provision_timeout: 1, autoscaler: gke}}
---
name: two
`,
};
const get = (key: string, ...args: string[]) =>
  config(FILES, '--server', 'server.yaml', '--get', key, ...args);

describe('skypilot config --get', () => {
  it('prints the value for a context and a task', async () => {
    const key = 'kubernetes.provision_timeout';
    expect(printed(await get(key))).toBe('600\n');
    expect(await get(key, '--task', 'task.yaml')).toMatchObject({ stdout: '30\n' });
    expect(await get(key, '--task', 'task.yaml', '--context', 'east')).toMatchObject({ stdout: '900\n' });
    expect(await get(key, '--config', `${key}=7`, '--format', 'json')).toMatchObject({ stdout: '7\n' });
  });

  it('explains it', async () => {
    const args = '--task task.yaml --context east --explain'.split(' ');
    const { stdout } = await get('kubernetes.provision_timeout', ...args);
    expect(stdout.split('\n').map((row) => row.split(/ {2,}/))).toEqual([
      [
        'kubernetes.provision_timeout for east, workspace default: the value of the context or region, else the general one; in kubernetes, mappings are merged',
      ],
      [''],
      ['PLACE', 'STATE'],
      ['kubernetes.context_configs.east.provision_timeout', 'taken'],
      ['kubernetes.provision_timeout of the task', 'overridden'],
      ['kubernetes.provision_timeout', 'overridden'],
      [''],
      ['KEY', 'VALUE', 'SOURCE', 'OVERRIDES'],
      [
        'kubernetes.provision_timeout',
        '900',
        'server server.yaml:13',
        'task task.yaml:4, server server.yaml:3',
      ],
      [''],
    ]);
    const json = await get('kubernetes.provision_timeout', ...args, '--format', 'json');
    expect(JSON.parse(json.stdout)).toMatchObject({
      key: 'kubernetes.provision_timeout',
      region: 'east',
      workspace: 'default',
      isSet: true,
      value: 900,
    });
  });

  it('says that nothing is set', async () => {
    const warning = "warning: kubernetes.autoscaler: not set; SkyPilot's default applies\n";
    expect(await get('kubernetes.autoscaler')).toEqual({ code: 0, stdout: '', stderr: warning });
    expect(await get('kubernetes.autoscaler', '--format', 'json')).toMatchObject({ stdout: 'null\n' });
    const { stdout } = await get('kubernetes.autoscaler', '--explain');
    expect(stdout).toContain('\nnot set\n');
  });

  it('answers for each task of a pipeline', async () => {
    const yaml = await get('kubernetes.provision_timeout', '--task', 'pipeline.yaml');
    expect(yaml.stdout).toBe('--- # task 1 of 2: one\n1\n--- # task 2 of 2: two\n600\n');
    // A task may not set the autoscaler.
    expect(yaml).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: pipeline.yaml:4: kubernetes.autoscaler: /),
    });
    const json = await get('kubernetes.provision_timeout', '--task', 'pipeline.yaml', '--format', 'json');
    expect(JSON.parse(json.stdout)).toEqual([
      { task: 1, of: 2, name: 'one', value: 1 },
      { task: 2, of: 2, name: 'two', value: 600 },
    ]);
  });

  it.for(['kubernetes.pod_config.spec.containers[0].env[0].value', 'kubernetes'])(
    'hides the secrets in %s',
    async (key) => {
      for (const args of [[], ['--explain'], ['--format', 'json', '--explain']]) {
        const { stdout, stderr } = await get(key, ...args);
        expect(stdout).toContain('****');
        expect(`${stdout}${stderr}`).not.toMatch(/token-of-the-pod/);
      }
      expect((await get(key, '--show-secrets')).stdout).toMatch(/token-of-the-pod/);
    },
  );

  it.for<[string[], string]>([
    [['kubernetes', '--workspace', 'lba'], 'workspace "lba": not in the configuration; named there: lab'],
    [
      ['kubernetes', '--context', 'esat'],
      'kubernetes has no context "esat" in the configuration; named there: east, west',
    ],
    [
      ['jobs.bucket', '--context', 'east', '--config', 'jobs.bucket=s3://a'],
      '--context: only kubernetes and ssh have contexts, so it has no effect on jobs.bucket',
    ],
    [
      ['aws.labels', '--region', 'east', '--config', 'aws.labels={a: b}'],
      '--region: aws.labels has no values by region, so it has no effect',
    ],
    [
      ['kubernetes', '--context', 'east', '--region', 'west'],
      '--region: the region of kubernetes is its context, so east is used',
    ],
    [
      ['kubernetes', '--zone', 'fast'],
      '--zone: only partitions of slurm have values of their own, with --region for the cluster',
    ],
  ])('warns: %j', async ([[key = '', ...args], warning]) => {
    expect(await get(key, ...args)).toMatchObject({ code: 0, stderr: `warning: ${warning}\n` });
  });

  it.for<[string[], string]>([
    [
      ['--get', 'kubernetes..a'],
      '--get: expected keys with dots between, such as kubernetes.pod_config, got "kubernetes..a"',
    ],
    [
      ['--get', 'kubernetes.provison_timeout'],
      '--get: kubernetes.provison_timeout: unknown key; the nearest right key is "provision_timeout"',
    ],
    [['--get', 'kubernetes.__proto__.x'], '--get: kubernetes.__proto__: unknown key'],
    [['--context', 'east'], '--context: expected --get with it'],
    [['--workspace', 'lab', '--explain'], '--workspace: expected --get with it'],
  ])('refuses %j', async ([args, message]) => {
    expect(await config(FILES, '--server', 'server.yaml', ...args)).toEqual(refused(message));
  });

  it('says where the value is that SkyPilot cannot merge', async () => {
    const files = {
      ...FILES,
      'task.yaml':
        'name: train\nconfig:\n  kubernetes:\n    pod_config:\n      spec:\n        tolerations: {key: own}\n',
    };
    const args = ['--server', 'server.yaml', '--task', 'task.yaml', '--get', 'kubernetes.pod_config'];
    const { code, stdout, stderr } = await config(files, ...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(
      /^error: task.yaml:6: SkyPilot cannot merge the values of kubernetes.pod_config: spec.tolerations: /,
    );
  });

  it('refuses a workspace of the configuration that does not exist', async () => {
    const { code, stderr } = await get('kubernetes.provision_timeout', '--config', 'active_workspace=shop');
    expect(code).toBe(1);
    expect(stderr).toContain(
      'error: --config active_workspace: active_workspace: expected default or a workspace',
    );
    const given = await get(
      'kubernetes.provision_timeout',
      ...'--config active_workspace=shop --workspace lab'.split(' '),
    );
    expect(given).toMatchObject({ code: 0, stderr: '' });
  });
});
