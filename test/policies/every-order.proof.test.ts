/**
 * Included policies in random orders about hostile tasks: what each of them makes sure of holds for what SkyPilot's own parser reads from the answer
 * of all. Needs `SKYPILOT_SOURCE`, a checkout of SkyPilot, and python3 with its dependencies (or stand-ins for them in `PYTHONPATH`).
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { temporaryFile } from '../support/files.ts';
import { optional } from '../support/properties.ts';
import { runWithSkypilot, skypilotSource } from '../support/skypilot-source.ts';
import { type Asked, chainOf } from './helpers.ts';

const SOURCE = skypilotSource();
const ORDERS = Number(process.env.ORDERS ?? 12);
const TASKS = 100;

const PEER = `
import sky
from sky import skypilot_config
from sky.utils import config_utils, yaml_utils

def read(task, config):
    skypilot_config._set_loaded_config(config_utils.Config.from_dict(yaml_utils.safe_load(config) or {}))
    all = []
    made = sky.Task.from_yaml_config(yaml_utils.safe_load(task) or {})
    for one in made.resources:
        stop = one.autostop_config
        labels = {}
        for cloud, region in (('kubernetes', None), ('kubernetes', 'east'), ('ssh', 'east')):
            found = skypilot_config.get_effective_region_config(cloud=cloud, region=region, keys=('custom_metadata',),
                default_value={}, override_configs=one.cluster_config_overrides)
            labels[f'{cloud}/{region}'] = (found or {}).get('labels')
        all.append({
            'cloud': None if one.cloud is None else str(one.cloud).lower(), 'region': one.region, 'zone': one.zone,
            'accelerators': one.accelerators, 'spot': one.use_spot, 'cost': one.max_hourly_cost,
            'images': None if one.image_id is None else list(one.image_id.values()), 'type': one.instance_type,
            'autostop': stop.idle_minutes if stop is not None and stop.enabled else None, 'labels': labels,
            'internal': skypilot_config.get_effective_region_config(cloud='aws', region=one.region, keys=('use_internal_ips',),
                default_value=False),
        })
    return {'nodes': made.num_nodes, 'volumes': made.volumes, 'resources': all}

answers = []
for task, config in asked:
    try:
        answers.append(read(task, config))
    except Exception as error:
        answers.append({'error': f'{type(error).__name__}: {error}'[:300]})
`;

interface ReadResources {
  readonly cloud: string | null;
  readonly region: string | null;
  readonly zone: string | null;
  readonly accelerators: Readonly<Record<string, number>> | null;
  readonly spot: boolean;
  readonly cost: number | null;
  readonly images: readonly string[] | null;
  readonly type: string | null;
  readonly autostop: number | null;
  readonly labels: Readonly<Record<string, Readonly<Record<string, string>> | null>>;
  readonly internal: boolean;
}

interface ReadTask {
  readonly error?: string;
  readonly nodes: number;
  readonly volumes: Readonly<Record<string, unknown>> | null;
  readonly resources: readonly ReadResources[];
}

const askPeer = (questions: readonly (readonly [string, string])[]) =>
  runWithSkypilot<ReadTask>(SOURCE ?? '', PEER, questions);

const KUBECONFIG = 'contexts: [{name: east}, {name: west}]\n';

function options(): Readonly<Record<string, unknown>> {
  return {
    add_labels: { app: 'skypilot' },
    add_labels_conditional: { team: 'ml' },
    add_volumes: { '/mnt/data': 'shared' },
    add_volumes_clouds: ['kubernetes'],
    allowed_clouds: ['aws/us-east-1', 'gcp', 'k8s/east', 'slurm/lab/gpu', 'slurm/lab/cpu'],
    allowed_images: ['docker:ubuntu:22.04', 'docker:ghcr.io/ours/*'],
    business_hours: ['00:00-24:00'],
    dynamic_kubernetes_contexts_update_registry: temporaryFile('contexts.yaml', 'default: [east]\n'),
    dynamic_kubernetes_contexts_update_kubeconfig: temporaryFile('kubeconfig', KUBECONFIG),
    max_price: 5,
    max_price_task: 12,
    max_price_instance_types: ['m6i.*'],
    rate_limit_launch: 1000,
    reject_old_clients: 20,
    restrict_overrides: ['kubernetes.custom_metadata', 'aws.vpc_name', 'docker'],
    restrict_overrides_server_config: temporaryFile('server.yaml', 'aws: {vpc_name: ours}\n'),
    restrict_overrides_action: 'reset',
    set_max_autostop_idle_minutes: 30,
    slurm_partition: ['lab/gpu'],
  };
}

const PROMISES: Readonly<Record<string, (one: ReadResources, task: ReadTask) => boolean>> = {
  AddLabelsPolicy: ({ labels }) =>
    ['kubernetes/None', 'kubernetes/east'].every((place) => labels[place]?.app === 'skypilot'),
  AddLabelsConditionalPolicy: ({ labels }) => Object.values(labels).every((own) => own?.team === 'ml'),
  AddVolumesPolicy: ({ cloud }, { volumes }) =>
    (cloud !== 'kubernetes' && cloud !== null) || volumes?.['/mnt/data'] !== undefined,
  AllowedCloudsPolicy: ({ cloud, region, zone }) =>
    (cloud === 'aws' && region?.toLowerCase() === 'us-east-1') ||
    cloud === 'gcp' ||
    (cloud === 'kubernetes' && region === 'east') ||
    (cloud === 'slurm' && region === 'lab' && (zone === 'gpu' || zone === 'cpu')),
  AllowedImagesPolicy: ({ images }) =>
    (images ?? []).every(
      (image) => image === 'docker:ubuntu:22.04' || image.startsWith('docker:ghcr.io/ours/'),
    ),
  DisablePublicIpPolicy: ({ internal }) => internal === true,
  MaxPricePolicy: ({ cost, type, cloud }, { nodes }) =>
    cost !== null &&
    cost <= Math.min(5, 12 / nodes) &&
    (type === null ||
      type.startsWith('m6i.') ||
      cloud === 'kubernetes' ||
      cloud === 'slurm' ||
      cloud === 'ssh'),
  SetMaxAutostopIdleMinutesPolicy: ({ autostop }) => autostop !== null && autostop <= 30,
  SlurmPartitionPolicy: ({ cloud, region, zone }) =>
    cloud !== null && (cloud !== 'slurm' || (region === 'lab' && zone === 'gpu')),
  UseSpotForGpuPolicy: ({ accelerators, spot }) =>
    accelerators === null || spot || accelerators.none !== undefined,
};
const OTHERS = [
  'BusinessHoursPolicy',
  'DynamicKubernetesContextsUpdatePolicy',
  'RateLimitLaunchPolicy',
  'RejectOldClientsPolicy',
  'RestrictOverridesPolicy',
];

const labels = fc.constantFrom({ app: 'mine' }, { team: 'x', other: 'y' }, {});
const kubernetes = optional({
  custom_metadata: fc.record({ labels }),
  provision_timeout: fc.constant(10),
  pod_config: fc.constant({ spec: { containers: [{ image: 'evil' }] } }),
});
const overrides = optional({
  kubernetes,
  ssh: kubernetes,
  docker: fc.constantFrom({ run_options: ['evil'] }, {}),
});
const accelerators = fc.constantFrom('A100', 'A100:4', { L4: 2 }, 'none', 'V100:1');
const place = fc.oneof(
  fc.record({
    infra: fc.constantFrom(
      ...[
        'aws',
        'AWS/US-EAST-1',
        'aws/us-west-2',
        'k8s',
        'kubernetes/east',
        'k8s/west',
        'slurm',
        'slurm/lab',
      ],
      ...['slurm/lab/cpu', 'slurm/lab/gpu', 'ssh/east', '*', 'gcp/us-central1', '*/us-east-1'],
    ),
  }),
  optional({
    cloud: fc.constantFrom('aws', 'gcp', 'kubernetes', 'slurm'),
    region: fc.constantFrom('us-east-1', 'east', 'lab'),
  }),
);
const resources = fc
  .tuple(
    place,
    optional({
      accelerators,
      use_spot: fc.boolean(),
      autostop: fc.constantFrom(
        true,
        false,
        10,
        500,
        '2h',
        { idle_minutes: 90 },
        { idle_minutes: 5, down: true },
      ),
      image_id: fc.constantFrom('docker:ubuntu:22.04', 'docker:evil', 'docker:ghcr.io/ours/a', {
        'us-east-1': 'docker:evil',
      }),
      max_hourly_cost: fc.constantFrom(1, 100),
      instance_type: fc.constantFrom('m6i.large', 'p4d.24xlarge', '4CPU--16GB'),
      labels: fc.constant({ a: 'b' }),
    }),
  )
  .map(([where, what]) => ({ ...where, ...what }));
const tasks = fc
  .tuple(
    optional({
      num_nodes: fc.constantFrom(1, 4),
      volumes: fc.constantFrom({ '/mnt/data': 'other' }, { '/mnt/own': 'own' }),
    }),
    resources,
    fc.oneof(
      fc.constant([{}, {}]),
      fc.tuple(fc.record({ config: overrides }), fc.constant({})),
      fc.tuple(fc.constant({}), fc.record({ _cluster_config_overrides: overrides })),
    ),
    fc.oneof(
      { weight: 2, arbitrary: fc.constant({}) },
      { weight: 1, arbitrary: fc.record({ any_of: fc.array(resources, { maxLength: 3 }) }) },
      { weight: 1, arbitrary: fc.record({ ordered: fc.array(resources, { maxLength: 3 }) }) },
    ),
  )
  .map(([task, outer, [config, made], alternatives]) => ({
    run: 'echo',
    ...task,
    ...config,
    resources: { ...outer, ...made, ...alternatives },
  }));
const configs = fc.constantFrom(
  'aws: {vpc_name: ours}\n',
  'aws: {vpc_name: ours, use_internal_ips: false}\nkubernetes: {custom_metadata: {labels: {app: mine}}}\n',
  'aws: {vpc_name: ours}\nkubernetes: {context_configs: {east: {custom_metadata: {labels: {app: theirs}}}}}\n',
);

describe.skipIf(SOURCE === undefined)('included policies in any order', () => {
  it('keep their promises, for what SkyPilot reads from the answer, which they accept unchanged', async () => {
    const sets = fc.sample(
      fc.shuffledSubarray([...Object.keys(PROMISES), ...OTHERS], { minLength: 2, maxLength: 7 }),
      ORDERS,
    );
    const accepted: {
      readonly order: readonly string[];
      readonly asked: Asked;
      readonly task: string;
      readonly config: string;
    }[] = [];
    const wrong: string[] = [];
    const all = options();
    for (const [index, order] of sets.entries()) {
      const own = Object.entries(all).filter(([name]) =>
        order.some((policy) => name.startsWith(snake(policy))),
      );
      const { ask, logger } = await chainOf(order, Object.fromEntries(own));
      const samples = fc.sample(fc.tuple(tasks, configs), { numRuns: TASKS, seed: 7919 * (index + 1) });
      for (const [task, config] of samples) {
        const asked = { task: JSON.stringify(task), config };
        const answer = await ask(asked);
        if (answer.failed) {
          wrong.push(
            `failed: ${order} ${JSON.stringify(asked)} ${JSON.stringify(logger.lines.at(-1)?.fields)}`,
          );
        } else if (answer.allowed) {
          accepted.push({ order, asked, task: answer.task_, config: answer.config });
          const again = await ask({ task: answer.task_, config: answer.config });
          if (!again.allowed || again.changed) {
            wrong.push(`again: ${order} ${JSON.stringify(asked)} ${again.policy}: ${again.message}`);
          }
        }
      }
    }
    let read = 0;
    for (const [index, found] of askPeer(
      accepted.map(({ task, config }) => [task, config] as const),
    ).entries()) {
      const { order = [], asked, task } = accepted[index] ?? {};
      if (found.error !== undefined) {
        continue;
      }
      read += 1;
      for (const policy of order) {
        const bad = found.resources.find((one) => PROMISES[policy]?.(one, found) === false);
        if (bad !== undefined) {
          wrong.push(`${policy} in ${order}: ${JSON.stringify(asked)} ${task} ${JSON.stringify(bad)}`);
        }
      }
    }
    expect(wrong.slice(0, 8)).toEqual([]);
    expect(read).toBeGreaterThan(accepted.length / 4);
  });
});

function snake(policy: string): string {
  return policy
    .replace(/Policy$/, '')
    .replaceAll(/(?<=.)([A-Z])/g, '_$1')
    .toLowerCase();
}
