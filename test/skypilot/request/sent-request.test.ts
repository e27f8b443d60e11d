import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { taskAsSent, taskText } from '../../../src/skypilot/request/sent-request.ts';

const sent = (text: string, flags = { idleMinutes: null as number | null, down: false }) =>
  taskAsSent(YamlDocument.parse(text), flags);
const resourcesOf = (text: string) => sent(`resources: ${text}`).task.resources;

describe('a task as SkyPilot sends it', () => {
  it('has defaults, and what the user wrote', () => {
    expect(sent('# mine\nrun: x   # here\n').task).toEqual({
      resources: {},
      num_nodes: 1,
      run: 'x',
      file_mounts: {},
      volumes: {},
      _user_specified_yaml: 'run: x\n',
    });
    expect(sent('_user_specified_yaml: "run: y"\n').task).toMatchObject({ _user_specified_yaml: 'run: y' });
  });

  it('has the configuration in its resources, and hooks beside them', () => {
    const { task } = sent(
      'config: {kubernetes: {provision_timeout: 600}, hooks: [{run: a}]}\nresources: {autostop: {down: true, hook: b}}\n',
    );
    expect(task).toMatchObject({
      config: {
        hooks: [
          { run: 'a', events: ['stop', 'preemption', 'down'], timeout: 3600 },
          { run: 'b', events: ['down'], timeout: 3600 },
        ],
      },
      resources: {
        autostop: { idle_minutes: 0, down: true },
        _cluster_config_overrides: { kubernetes: { provision_timeout: 600 } },
      },
    });
    expect(task.resources).not.toHaveProperty('autostop.hook');
  });

  it('has variables as texts, as Python writes them, and their values where they are used', () => {
    const { task } =
      sent(`envs: {A: 1, B: 1.0, C: 1.5e-7, D: true, E: 012, F: 2026-11-21, G: 1.0e+20, H: 0x1F}
file_mounts: {/data/$A: "s3://b/\${D}/$NONE"}
run: echo $A
`);
    expect(task).toMatchObject({
      envs: { A: '1', B: '1.0', C: '1.5e-07', D: 'True', E: '10', F: '2026-11-21', G: '1e+20', H: '31' },
      file_mounts: { '/data/1': 's3://b/True/$NONE' },
      run: 'echo $A',
    });
  });

  it('names the secrets that the server keeps', () => {
    expect(sent('secrets: {A: ~, "secrets:B": ~}\n').task).toMatchObject({
      secrets: ['secrets:A', 'secrets:B'],
    });
    expect(sent('secrets: {A: 1, B: ~}\n').task).toMatchObject({
      secrets: { A: '1' },
      managed_secrets: ['secrets:B'],
    });
  });

  it('keeps what it does not know, hostile names included', () => {
    const { task } = sent(
      'future: {a: 1}\nresources: {infra: [aws], __proto__: {a: 1}}\n__proto__: {b: 2}\n',
    );
    expect(Object.keys(task)).toEqual(expect.arrayContaining(['future', '__proto__']));
    expect(task).toMatchObject({ future: { a: 1 }, resources: { infra: ['aws'] } });
    expect({}).not.toHaveProperty('b');
  });
});

describe('resources as SkyPilot sends them', () => {
  it.for<[string, unknown]>([
    ['{infra: K8S/a/b}', { infra: 'kubernetes/a/b' }],
    ['{cloud: AWS, zone: us-east-1a}', { infra: 'aws/*/us-east-1a' }],
    ['{infra: "*"}', {}],
    ['{infra: aws, cloud: gcp}', { infra: 'aws', cloud: 'gcp' }],
    ['{gpus: H100}', { accelerators: { H100: 1 } }],
    ['{accelerators: {H100: ~}}', { accelerators: { H100: 1 } }],
    ['{accelerators: "H100:0.5"}', { accelerators: { H100: 0.5 } }],
    ['{accelerators: 80GB+}', { accelerators: '80GB+' }],
    [
      '{accelerators: tpu-v5p-8}',
      {
        infra: 'gcp',
        accelerators: { 'tpu-v5p-8': 1 },
        accelerator_args: { runtime_version: 'v2-alpha-tpuv5' },
      },
    ],
    ['{cpus: 4, memory: 16GB+, disk_size: 1TB}', { cpus: '4', memory: '16.0+', disk_size: 1024 }],
    ['{autostop: 2h}', { autostop: { idle_minutes: 120, down: false } }],
    ['{autostop: false}', { autostop: false }],
    ['{autostop: soon}', { autostop: 'soon' }],
    ['{job_recovery: failover}', { job_recovery: { strategy: 'FAILOVER' } }],
    ['{spot_recovery: none}', {}],
    ['{ports: [8080, "22-25", 26, "9000,9001"]}', { ports: ['22-26', '8080', '9000-9001'] }],
    [
      '{infra: aws/us-east-1, image_id: ami-1}',
      { infra: 'aws/us-east-1', image_id: { 'us-east-1': 'ami-1' } },
    ],
    ['{local_disk: 500+, disk_tier: BEST}', { disk_tier: 'best', local_disk: 'nvme:500+' }],
    ['~', {}],
    ['[aws]', ['aws']],
  ])('%s', ([text, expected]) => {
    expect(resourcesOf(text)).toEqual(expected);
  });

  it('are complete in each alternative, with the labels of all', () => {
    expect(
      resourcesOf('{cpus: 4, labels: {a: b}, any_of: [{infra: aws, labels: {c: d}}, {gpus: [A100, H100]}]}'),
    ).toEqual({
      any_of: [
        { infra: 'aws', cpus: '4', labels: { a: 'b', c: 'd' } },
        { cpus: '4', accelerators: { A100: 1 }, labels: { a: 'b', c: 'd' } },
        { cpus: '4', accelerators: { H100: 1 }, labels: { a: 'b', c: 'd' } },
      ],
    });
    expect(resourcesOf('{accelerators: [A100, H100]}')).toEqual({
      ordered: [{ accelerators: { A100: 1 } }, { accelerators: { H100: 1 } }],
    });
    expect(resourcesOf('{ordered: [{cpus: 4}]}')).toEqual({ cpus: '4' });
    expect(resourcesOf('{any_of: [1]}')).toEqual({ any_of: [1] });
  });
});

describe('autostop', () => {
  it('of the command line overrides that of the task, and is copied into the options', () => {
    const { task, autostop } = sent('resources: {autostop: 5}\n', { idleMinutes: 30, down: true });
    expect(task.resources).toEqual({ autostop: { idle_minutes: 30, down: true } });
    expect(autostop).toEqual({ idleMinutes: 30, down: true });
  });

  it('of the task is copied into the options', () => {
    expect(sent('resources: {autostop: {idle_minutes: 5, down: true}}\n').autostop).toEqual({
      idleMinutes: 5,
      down: true,
    });
    expect(sent('run: x\n').autostop).toEqual({ idleMinutes: null, down: false });
  });
});

it('writes the name of no region as null', () => {
  const { task } = sent('resources: {any_of: [{image_id: ubuntu}, {cpus: 4}]}\nrun: "null: x"\n');
  const text = taskText(task);
  expect(text).toContain('image_id:\n        null: ubuntu\n');
  expect(YamlDocument.parse(text).value).toEqual(task);
});
