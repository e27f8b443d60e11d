import { describe, expect, it } from 'vitest';
import { REQUEST_NAMES } from '../../src/skypilot/request/user-request.ts';
import { REJECTED } from '../support/decisions.ts';
import { askTwice, chainOf, TASK } from './helpers.ts';

it('RejectAllPolicy rejects every request with a message for the user', async () => {
  const { ask } = await chainOf(['RejectAllPolicy']);
  expect(REQUEST_NAMES).toHaveLength(12);
  const named = REQUEST_NAMES.map((name) => ({ name }));
  for (const asked of [...named, { name: 'jobs.launch', options: null }, { atClientSide: true }]) {
    expect(await ask(asked)).toMatchObject({
      allowed: false,
      failed: false,
      policy: 'RejectAllPolicy',
      message: 'No requests are accepted at the moment.',
    });
  }
});

describe('AddLabelsPolicy', () => {
  it('adds its label to a configuration without labels, and keeps the task', async () => {
    const { ask } = await chainOf(['AddLabelsPolicy']);
    for (const name of ['launch', 'validate']) {
      const { config, task_, changed } = await askTwice(ask, { name });
      expect(config).toBe('kubernetes:\n  custom_metadata:\n    labels:\n      app: skypilot\n');
      expect(task_).toBe(TASK);
      expect(changed).toBe(true);
    }
  });

  it('keeps other labels, and replaces those of the same name', async () => {
    const { ask } = await chainOf(['AddLabelsPolicy'], {
      add_labels: { app: 'ours', 'site.org/team': 'ml' },
    });
    const { skypilotConfig } = await askTwice(ask, {
      config:
        'kubernetes:\n  custom_metadata:\n    labels: {app: theirs, owner: lee}\n    annotations: {a: b}\n',
    });
    expect(skypilotConfig.getNested(['kubernetes', 'custom_metadata'])).toEqual({
      labels: { app: 'ours', owner: 'lee', 'site.org/team': 'ml' },
      annotations: { a: 'b' },
    });
  });

  it.each([
    'kubernetes:',
    'kubernetes: {custom_metadata: null}',
    'kubernetes: {custom_metadata: {labels: []}}',
  ])('adds it to %s', async (config) => {
    const { ask } = await chainOf(['AddLabelsPolicy']);
    const { skypilotConfig } = await askTwice(ask, { config });
    expect(skypilotConfig.getNested(['kubernetes', 'custom_metadata', 'labels'])).toEqual({
      app: 'skypilot',
    });
  });

  it.each(['labels: {app: theirs, owner: lee}', 'labels: null', 'labels: x', 'annotations: {a: b}'])(
    'wins over what a task or a context would lay over it: %s',
    async (metadata) => {
      const cloud = `{custom_metadata: {${metadata}}, pod_config: {metadata: {labels: {app: theirs}}}}`;
      const overrides = `{kubernetes: ${cloud}, ssh: ${cloud}, docker: {run_options: [a]}}`;
      const { ask } = await chainOf(['AddLabelsPolicy']);
      const { task, skypilotConfig } = await askTwice(ask, {
        task: `config: ${overrides}
experimental: {config_overrides: ${overrides}}
resources:
  _cluster_config_overrides: ${overrides}
  any_of: [{infra: k8s, _cluster_config_overrides: ${overrides}}, {infra: aws}]
  ordered: [{_cluster_config_overrides: ${overrides}}]
run: hostname
`,
        config: `kubernetes: {context_configs: {east: ${cloud}, __proto__: ${cloud}, west: {provision_timeout: 5}}}
ssh: {context_configs: {pool: ${cloud}}, custom_metadata: {${metadata}}}
`,
      });
      const all = (tree: unknown, name: string): unknown[] =>
        typeof tree !== 'object' || tree === null
          ? []
          : Object.entries(tree).flatMap(([key, value]) => (key === name ? [value] : all(value, name)));
      const metadatas = [
        ...all(task, 'custom_metadata'),
        ...all(skypilotConfig.toDict(), 'custom_metadata'),
      ] as { labels: object }[];
      expect(metadatas).toHaveLength(10 + 5);
      for (const { labels } of metadatas) {
        expect(labels).toMatchObject({ app: 'skypilot' });
      }
      expect(skypilotConfig.getNested(['kubernetes', 'context_configs', 'west'])).toEqual({
        provision_timeout: 5,
      });
    },
  );

  it('keeps a task that overrides no metadata', async () => {
    const { ask } = await chainOf(['AddLabelsPolicy']);
    const task = 'resources: {_cluster_config_overrides: {kubernetes: {provision_timeout: 5}}}\n';
    expect((await askTwice(ask, { task })).task_).toBe(task);
  });
});

describe('DisablePublicIpPolicy', () => {
  it.each(['vpc_name: prod', 'vpc_names: prod', 'vpc_names: [prod, spare]'])(
    'has internal addresses used where the VPC is named: %s',
    async (vpc) => {
      const { ask } = await chainOf(['DisablePublicIpPolicy']);
      const { skypilotConfig } = await askTwice(ask, {
        config: `aws:\n  use_internal_ips: false\n  ${vpc}\n`,
      });
      expect(skypilotConfig.getNested(['aws', 'use_internal_ips'])).toBe(true);
      // SkyPilot refuses a configuration with a name that it does not know.
      expect(Object.keys(skypilotConfig.getNested(['aws']) as object)).not.toContain('use_internal_ip');
    },
  );

  it.each(['{}', 'aws:', 'aws: {vpc_name: null}', 'aws: {vpc_name: " "}', 'aws: {vpc_names: []}', 'aws: x'])(
    'rejects where it is not, and says what to set: %s',
    async (config) => {
      const { ask } = await chainOf(['DisablePublicIpPolicy']);
      const answer = await ask({ config });
      expect(answer).toMatchObject(REJECTED);
      expect(answer.message).toContain('set aws.vpc_name in ~/.sky/config.yaml');
    },
  );
});

describe('UseSpotForGpuPolicy', () => {
  const spot = async (resources: string) => {
    const { ask } = await chainOf(['UseSpotForGpuPolicy']);
    const { task } = await askTwice(ask, { task: `name: train\nresources:\n${resources}\nrun: hostname\n` });
    return task.resources;
  };

  it.each(['A100', 'A100:8', '{A100: 8}', '[A100:8, H100]', '"{A100: 8}"', '{A100: null}'])(
    'takes spot instances for the accelerators %s',
    async (accelerators) => {
      expect(await spot(`  use_spot: false\n  accelerators: ${accelerators}`)).toMatchObject({
        use_spot: true,
      });
    },
  );

  it.each([
    'cpus: 4',
    'infra: lambda\n  accelerators: A100',
    'any_of: [{infra: ssh/pool, gpus: H100}, {infra: slurm, accelerators: H100}]',
    'accelerators:',
    'accelerators: []',
    'accelerators: {}',
    'use_spot: false',
  ])('leaves what asks for none as it is: %s', async (resources) => {
    const { ask } = await chainOf(['UseSpotForGpuPolicy']);
    const task = `resources:\n  ${resources} # as it came\nrun: hostname\n`;
    expect(await askTwice(ask, { task })).toMatchObject({ changed: false, task_: task });
  });

  it('takes none where the server has only clouds without', async () => {
    const { ask } = await chainOf(['UseSpotForGpuPolicy']);
    const asked = (clouds: string) => ({
      task: 'resources: {accelerators: A100}\n',
      config: `allowed_clouds: [${clouds}]\n`,
    });
    expect(await askTwice(ask, asked('lambda, do'))).toMatchObject({ changed: false });
    expect(await askTwice(ask, asked('lambda, aws'))).toMatchObject({ changed: true });
  });

  it('rejects a service of which only some would be spot instances, which SkyPilot cannot serve', async () => {
    const { ask } = await chainOf(['UseSpotForGpuPolicy']);
    const task = (any: string, more = '') => `resources: {any_of: [${any}]}\n${more}`;
    const mixed = '{infra: aws, accelerators: A100}, {infra: lambda, accelerators: A100}';
    expect(await ask({ task: task(mixed, 'service: {replicas: 2}\n') })).toMatchObject(REJECTED);
    expect(await askTwice(ask, { task: task(mixed) })).toMatchObject({ changed: true });
    const alike = '{infra: aws, accelerators: A100}, {infra: gcp, accelerators: A100}';
    expect(await askTwice(ask, { task: task(alike, 'service: {replicas: 2}\n') })).toMatchObject({
      changed: true,
    });
  });
});
