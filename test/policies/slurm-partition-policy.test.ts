import { describe, expect, it } from 'vitest';
import { type Asked, askTwice, chainOf, problemsOf } from './helpers.ts';

const OPTIONS = {
  slurm_partition: ['lab/cpu', 'lab/gpu'],
  slurm_partition_workspaces: { research: 'lab/a100 big/*', guests: 'lab/cpu' },
};
const chain = (options: Readonly<Record<string, unknown>> = OPTIONS) =>
  chainOf(['SlurmPartitionPolicy'], options);
const taskWith = (resources: string, more = '') => `resources: ${resources}\nrun: hostname\n${more}`;

async function resourcesAfter(resources: string, config = '{}\n') {
  const { ask } = await chain();
  return (await askTwice(ask, { task: taskWith(resources), config })).task.resources;
}

async function refused(asked: Asked) {
  const { ask } = await chain();
  const answer = await ask(asked);
  expect(answer).toMatchObject({ allowed: false, failed: false });
  return answer.message;
}

describe('SlurmPartitionPolicy', () => {
  it.each([
    '{infra: slurm/lab/gpu}',
    '{infra: SLURM/lab/cpu}',
    '{cloud: slurm, region: lab, zone: gpu}',
    '{infra: aws}',
    '{any_of: [{infra: slurm/lab/gpu}, {infra: k8s/east}]}',
  ])('leaves an allowed partition, and other clouds, as they are: %s', async (resources) => {
    const { ask } = await chain();
    const task = taskWith(resources);
    expect(await askTwice(ask, { task })).toMatchObject({ changed: false, task_: task });
  });

  it.each([
    ['{infra: slurm/lab/debug}', 'slurm/lab/debug'],
    ['{infra: slurm/lab/GPU}', 'slurm/lab/GPU'],
    ['{infra: slurm/other/gpu}', 'slurm/other/gpu'],
    ['{infra: slurm/*/debug}', 'slurm/*/debug'],
    ['{cloud: slurm, region: lab, zone: debug}', 'slurm/lab/debug'],
    ['{infra: slurm/lab/gpu, any_of: [{cpus: 2}, {infra: slurm/lab/debug}]}', 'slurm/lab/debug'],
  ])('rejects another, in every alternative and spelling: %s', async (resources, place) => {
    expect(await refused({ task: taskWith(resources) })).toBe(
      `Tasks may not run on ${place} here. Set infra to one of: slurm/lab/cpu, slurm/lab/gpu.`,
    );
  });

  it('limits a task that names no partition to the allowed ones', async () => {
    const places = [{ infra: 'slurm/lab/cpu' }, { infra: 'slurm/lab/gpu' }];
    expect(await resourcesAfter('{infra: slurm/lab}')).toEqual({ any_of: places });
    expect(await resourcesAfter('{cloud: slurm, cpus: 4}')).toEqual({ cpus: 4, any_of: places });
    expect(await resourcesAfter('{infra: slurm/*/gpu}')).toEqual({ infra: 'slurm/lab/gpu' });
  });

  it.each(['{}', '{cpus: 4}', '{infra: "*"}', '{region: lab}', '{any_of: [{infra: aws}, {cpus: 2}]}'])(
    'rejects a task for which SkyPilot may choose Slurm: %s',
    async (resources) => {
      expect(await refused({ task: taskWith(resources) })).toContain('Tasks must name the cloud here');
    },
  );

  it('goes by workspace', async () => {
    const inWorkspace = (name: string) => ({ config: `active_workspace: ${name}\n` });
    const { ask } = await chain();
    const research = inWorkspace('research');
    expect(await askTwice(ask, { ...research, task: taskWith('{infra: slurm/big/any}') })).toMatchObject({
      changed: false,
    });
    expect(await askTwice(ask, { ...research, task: taskWith('{infra: slurm/big}') })).toMatchObject({
      changed: false,
    });
    expect(await refused({ ...research, task: taskWith('{infra: slurm/lab/gpu}') })).toContain(
      'slurm/lab/a100, slurm/big',
    );
    expect(await refused({ ...inWorkspace('guests'), task: taskWith('{infra: slurm/lab/gpu}') })).toContain(
      'one of: slurm/lab/cpu.',
    );
    expect(
      await askTwice(ask, { ...inWorkspace('toString'), task: taskWith('{infra: slurm/lab/gpu}') }),
    ).toMatchObject({ changed: false });
  });

  it('does not let a task name a workspace with more partitions', async () => {
    const task = `${taskWith('{infra: slurm/lab/a100}')}config: {active_workspace: research}\n`;
    expect(await refused({ task, config: 'active_workspace: guests\n' })).toContain('slurm/lab/a100');
    const { ask } = await chain();
    expect(await ask({ task, config: 'active_workspace: research\n' })).toMatchObject({ allowed: true });
  });

  it('allows early requests without a workspace what the launch may be allowed', async () => {
    const { ask } = await chain();
    const task = taskWith('{infra: slurm/lab/a100}');
    expect(await ask({ name: 'validate', task })).toMatchObject({ allowed: true });
    expect(await ask({ name: 'launch', task })).toMatchObject({ allowed: false });
    expect(await ask({ name: 'validate', task: taskWith('{infra: slurm/lab/debug}') })).toMatchObject({
      allowed: false,
    });
  });

  it.each([
    '{partition: debug}',
    '{PARTITION: debug}',
    '{part: debug}',
    '{p: debug}',
    '{clusters: other}',
    '{cluster: other}',
    '{clu: other}',
    '{M: other}',
    '{"comment=x --partition": debug}',
    '{comment: "x --partition=debug"}',
    '{comment: "x\\t-p debug"}',
    '{"-p": debug}',
    '{comment: "x\\n"}',
  ])('rejects an option of sbatch that leads elsewhere: %s', async (options) => {
    const slurm = [
      `{sbatch_options: ${options}}`,
      `{cluster_configs: {lab: {sbatch_options: ${options}}}}`,
      `{cluster_configs: {lab: {partition_configs: {gpu: {sbatch_options: ${options}}}}}}`,
    ];
    for (const one of slurm) {
      const overrides = `{infra: slurm/lab/gpu, _cluster_config_overrides: {slurm: ${one}}}`;
      for (const asked of [
        { task: taskWith('{infra: slurm/lab/gpu}'), config: `slurm: ${one}\n` },
        { task: `${taskWith('{infra: slurm/lab/gpu}')}config: {slurm: ${one}}\n` },
        { task: taskWith(`{any_of: [{infra: aws}, ${overrides}]}`) },
      ]) {
        expect(await refused(asked)).toContain('slurm.sbatch_options may not have');
      }
    }
  });

  it('leaves other options of sbatch', async () => {
    const { ask } = await chain();
    const config =
      'slurm: {sbatch_options: {time: "1:00:00", account: lab, exclusive: true, qos: null, mail_type: END}}\n';
    expect(await askTwice(ask, { task: taskWith('{infra: slurm/lab/gpu}'), config })).toMatchObject({
      changed: false,
    });
  });

  it.each([
    '{cpu_partition: debug}',
    '{cluster_configs: {lab: {cpu_partition: debug}}}',
    '{gpu_partition_map: {A100: [gpu, debug]}}',
    '{cpu_partition: [gpu, 3]}',
  ])('rejects another partition in the configuration of a task: %s', async (slurm) => {
    expect(
      await refused({ task: `${taskWith('{infra: slurm/lab/gpu}')}config: {slurm: ${slurm}}\n` }),
    ).toContain('Tasks may not use the partition');
    const { ask } = await chain();
    const fine = slurm.replace('debug', 'cpu').replace(', 3', '');
    expect(
      await ask({ task: `${taskWith('{infra: slurm/lab/gpu}')}config: {slurm: ${fine}}\n` }),
    ).toMatchObject({ allowed: true });
  });

  it('leaves sky exec where its cluster is', async () => {
    const { ask } = await chain();
    expect(await ask({ name: 'exec', task: taskWith('{cpus: 4}') })).toMatchObject({
      allowed: true,
      changed: false,
    });
    expect(await ask({ name: 'exec', task: taskWith('{infra: slurm/lab/debug}') })).toMatchObject({
      allowed: false,
    });
  });

  it('is refused without partitions, and with unreadable ones', async () => {
    expect(await problemsOf('SlurmPartitionPolicy', {})).toEqual([
      expect.stringContaining('SlurmPartitionPolicy needs slurm_partition'),
    ]);
    for (const options of [
      { slurm_partition: ['gpu'] },
      { slurm_partition: ['a/b/c'] },
      { slurm_partition_workspaces: { a: 'gpu' } },
    ]) {
      expect(await problemsOf('SlurmPartitionPolicy', options)).not.toEqual([]);
    }
  });
});
