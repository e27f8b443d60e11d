import { describe, expect, it } from 'vitest';
import { ALLOWED } from '../support/decisions.ts';
import { resourcePolicy, taskWith } from './helpers.ts';

const OPTIONS = {
  slurm_partition: ['lab/cpu', 'lab/gpu'],
  slurm_partition_workspaces: { research: 'lab/a100 big/*', guests: 'lab/cpu' },
};
const policy = () => resourcePolicy('SlurmPartitionPolicy', OPTIONS);

describe('SlurmPartitionPolicy', () => {
  it.each([
    '{infra: slurm/lab/gpu}',
    '{infra: aws}',
    '{any_of: [{infra: slurm/lab/gpu}, {infra: k8s/east}]}',
  ])('leaves an allowed partition, and other clouds, as they are: %s', async (resources) => {
    await (await policy()).leaves(resources);
  });

  it.each([
    ['{infra: slurm/lab/debug}', 'slurm/lab/debug'],
    ['{infra: slurm/lab/GPU}', 'slurm/lab/GPU'],
    ['{infra: slurm/other/gpu}', 'slurm/other/gpu'],
    ['{infra: slurm/lab/gpu, any_of: [{cpus: 2}, {infra: slurm/lab/debug}]}', 'slurm/lab/debug'],
  ])('rejects another, in every alternative and spelling: %s', async (resources, place) => {
    await (await policy()).refuses(
      resources,
      `Tasks may not run on ${place} here. Set infra to one of: slurm/lab/cpu, slurm/lab/gpu.`,
    );
  });

  it('limits a task that names no partition to the allowed ones', async () => {
    const { resourcesAfter } = await policy();
    const places = [{ infra: 'slurm/lab/cpu' }, { infra: 'slurm/lab/gpu' }];
    expect(await resourcesAfter('{infra: slurm/lab}')).toEqual({ any_of: places });
    expect(await resourcesAfter('{cloud: slurm, cpus: 4}')).toEqual({ cpus: 4, any_of: places });
    expect(await resourcesAfter('{infra: slurm/*/gpu}')).toEqual({ infra: 'slurm/lab/gpu' });
  });

  it.each(['{}', '{cpus: 4}', '{infra: "*"}', '{region: lab}', '{any_of: [{infra: aws}, {cpus: 2}]}'])(
    'rejects a task for which SkyPilot may choose Slurm: %s',
    async (resources) => {
      await (await policy()).refuses(resources, expect.stringContaining('Tasks must name the cloud here'));
    },
  );

  it('goes by workspace', async () => {
    const { leaves, refuses } = await policy();
    const inWorkspace = (name: string) => ({ config: `active_workspace: ${name}\n` });
    const one = (...places: string[]) => expect.stringContaining(`one of: ${places.join(', ')}.`);
    await leaves('{infra: slurm/big/any}', inWorkspace('research'));
    await leaves('{infra: slurm/big}', inWorkspace('research'));
    await refuses('{infra: slurm/lab/gpu}', expect.stringContaining('slurm/lab/a100, slurm/big'), {
      ...inWorkspace('research'),
    });
    await refuses('{infra: slurm/lab/gpu}', one('slurm/lab/cpu'), inWorkspace('guests'));
    await leaves('{infra: slurm/lab/gpu}', inWorkspace('toString'));
  });

  it('does not let a task name a workspace with more partitions', async () => {
    const { ask, refuses } = await policy();
    const task = `${taskWith('{infra: slurm/lab/a100}')}config: {active_workspace: research}\n`;
    const guests = { task, config: 'active_workspace: guests\n' };
    await refuses('', expect.stringContaining('slurm/lab/a100'), guests);
    expect(await ask({ task, config: 'active_workspace: research\n' })).toMatchObject(ALLOWED);
  });

  it('allows early requests without a workspace what the launch may be allowed', async () => {
    const { ask, refuses } = await policy();
    const task = taskWith('{infra: slurm/lab/a100}');
    expect(await ask({ name: 'validate', task })).toMatchObject(ALLOWED);
    await refuses('', expect.any(String), { name: 'launch', task });
    await refuses('{infra: slurm/lab/debug}', expect.any(String), { name: 'validate' });
  });

  it.each([
    '{partition: debug}',
    '{part: debug}',
    '{clusters: other}',
    '{M: other}',
    '{"comment=x --partition": debug}',
    '{comment: "x --partition=debug"}',
    `{comment: "x '--partition=debug'"}`,
    '{comment: packjob}',
    '{"-p": debug}',
    '{comment: "x\\n"}',
  ])('rejects an option of sbatch that leads elsewhere: %s', async (options) => {
    const { refuses } = await policy();
    const slurm = [
      `{sbatch_options: ${options}}`,
      `{cluster_configs: {lab: {sbatch_options: ${options}}}}`,
      `{cluster_configs: {lab: {partition_configs: {gpu: {sbatch_options: ${options}}}}}}`,
    ];
    for (const one of slurm) {
      const overrides = `{infra: slurm/lab/gpu, _cluster_config_overrides: {slurm: ${one}}}`;
      for (const asked of [
        { task: taskWith('{infra: slurm/lab/gpu}'), config: `slurm: ${one}\n` },
        { task: taskWith('{infra: slurm/lab/gpu}', `config: {slurm: ${one}}\n`) },
        { task: taskWith(`{any_of: [{infra: aws}, ${overrides}]}`) },
      ]) {
        await refuses('', expect.stringContaining('slurm.sbatch_options may not have'), asked);
      }
    }
  });

  it('leaves other options of sbatch', async () => {
    const config =
      'slurm: {sbatch_options: {time: "1:00:00", account: lab, exclusive: true, qos: null, mail_type: END}}\n';
    await (await policy()).leaves('{infra: slurm/lab/gpu}', { config });
  });

  it.each([
    '{cpu_partition: debug}',
    '{gpu_partition_map: {A100: [gpu, debug]}}',
    '{cpu_partition: [gpu, 3]}',
  ])('rejects another partition in the configuration of a task: %s', async (slurm) => {
    const { ask, refuses } = await policy();
    const task = (own: string) => taskWith('{infra: slurm/lab/gpu}', `config: {slurm: ${own}}\n`);
    await refuses('', expect.stringContaining('Tasks may not use the partition'), { task: task(slurm) });
    const fine = slurm.replace('debug', 'cpu').replace(', 3', '');
    expect(await ask({ task: task(fine) })).toMatchObject(ALLOWED);
  });

  it('leaves sky exec where its cluster is', async () => {
    const { leaves, refuses } = await policy();
    await leaves('{cpus: 4}', { name: 'exec' });
    await refuses('{infra: slurm/lab/debug}', expect.any(String), { name: 'exec' });
  });
});
