import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatOrigin } from '../../../../src/base/errors.ts';
import { formatPath, type Mapping, valueAt } from '../../../../src/base/yaml/tree.ts';
import { MergeError } from '../../../../src/config/merge.ts';
import {
  type EffectiveValue,
  effectiveValueOf,
} from '../../../../src/skypilot/config/effective/effective-value.ts';
import { keyOf, workspaceOf } from '../../../../src/skypilot/config/effective/question.ts';
import {
  type LeafSource,
  NOTHING,
  taskOverrides,
  tracedConfig,
} from '../../../../src/skypilot/config/effective/traced.ts';
import { type Level, mergeSources } from '../../../../src/skypilot/config/layers.ts';
import { configSource } from '../../../support/skypilot.ts';
import { type SkypilotQuestion, skypilotQuestion } from '../../../support/skypilot-questions.ts';

interface Place {
  readonly region?: string;
  readonly zone?: string;
  readonly workspace?: string;
}

function answer(
  texts: Partial<Record<Level, string>>,
  key: string,
  { region, zone, workspace }: Place = {},
): EffectiveValue<LeafSource> {
  const { task, ...others } = texts;
  const sources = Object.entries(others).map(([level, yaml]) => configSource(level as Level, yaml));
  const merged = mergeSources(sources);
  const own =
    task === undefined ? undefined : tracedConfig(mergeSources([configSource('task', task)]), 'task');
  const commandLine = tracedConfig(
    mergeSources(sources.filter(({ level }) => level === 'command line')),
    'task',
  );
  const reading = {
    config: tracedConfig(merged),
    task: taskOverrides(own, commandLine),
    workspace: workspace ?? workspaceOf(merged.tree),
    region,
    zone,
  };
  return effectiveValueOf(reading, keyOf(key) ?? []);
}

const value = (...question: Parameters<typeof answer>) => answer(...question).value;

/** `key = value < level:line of the source < level:line of what it beats`. */
function explained(...question: Parameters<typeof answer>): string[] {
  const line = ({ place }: LeafSource) => formatOrigin(place.origin);
  return answer(...question).leaves.map(({ path, value: leaf, source: won, beats }) =>
    [`${formatPath(path)} = ${JSON.stringify(leaf)}`, ...[won, ...beats].map(line)].join(' < '),
  );
}

const places = (...question: Parameters<typeof answer>) =>
  answer(...question).lookedAt.map(
    ({ where, key, state }) => `${state}: ${where === 'task' ? 'task ' : ''}${key.join('.')}`,
  );

const CONTEXTS = `kubernetes:
  autoscaler: generic
  pod_config:
    metadata:
      labels: {team: all}
    spec:
      tolerations: [{key: gpu}]
  context_configs:
    east:
      autoscaler: gke
      pod_config:
        metadata:
          labels: {zone: east}
        spec:
          tolerations: [{key: spot}]
    west:
      provision_timeout: 60
`;

describe('a value of a context', () => {
  it.for<[string, string | undefined, unknown]>([
    ['autoscaler', 'east', 'gke'],
    ['autoscaler', 'west', 'generic'],
    ['autoscaler', undefined, 'generic'],
    ['provision_timeout', 'east', undefined],
    ['pod_config.metadata.labels', 'east', { team: 'all', zone: 'east' }],
    ['pod_config.spec.tolerations', 'east', [{ key: 'gpu' }, { key: 'spot' }]],
    ['pod_config.spec.tolerations[1].key', 'east', 'spot'],
    ['context_configs.east.autoscaler', undefined, 'gke'],
  ])('%s in %s is %j', ([key, region, expected]) => {
    expect(value({ server: CONTEXTS }, `kubernetes.${key}`, region === undefined ? {} : { region })).toEqual(
      expected,
    );
  });

  it('joins lists of any mapping of kubernetes, such as allowed_nodes', () => {
    const server = `kubernetes:
  allowed_nodes: {names: [a]}
  custom_metadata: {labels: {team: all}}
  context_configs: {east: {allowed_nodes: {names: [b]}, custom_metadata: {labels: {zone: east}}}}
`;
    const of = (key: string) => value({ server }, `kubernetes.${key}`, { region: 'east' });
    expect(of('allowed_nodes.names')).toEqual(['a', 'b']);
    expect(of('custom_metadata.labels')).toEqual({ team: 'all', zone: 'east' });
  });

  it('null is the same as none', () => {
    const server =
      'kubernetes: {namespace: a, autoscaler: gke, context_configs: {east: {namespace: null, autoscaler: null}}}';
    expect(value({ server }, 'kubernetes.autoscaler', { region: 'east' })).toBe('gke');
    expect(value({ server }, 'kubernetes.namespace', { region: 'east' })).toBe('a');
  });

  it('says where each leaf comes from', () => {
    const user = 'kubernetes: {pod_config: {metadata: {labels: {zone: mine, team: b}}}}';
    expect(explained({ server: CONTEXTS, user }, 'kubernetes.pod_config', { region: 'east' })).toEqual([
      'metadata.labels.team = "b" < user:1 < server:5',
      'metadata.labels.zone = "east" < server:13 < user:1',
      'spec.tolerations[0].key = "gpu" < server:7',
      'spec.tolerations[1].key = "spot" < server:15',
    ]);
  });

  it('says which places were looked at', () => {
    expect(places({ server: CONTEXTS }, 'kubernetes.autoscaler', { region: 'east' })).toEqual([
      'taken: kubernetes.context_configs.east.autoscaler',
      'overridden: kubernetes.autoscaler',
    ]);
    expect(places({ server: CONTEXTS }, 'kubernetes.provision_timeout', { region: 'east' })).toEqual([
      'not set: kubernetes.context_configs.east.provision_timeout',
      'not set: kubernetes.provision_timeout',
    ]);
  });
});

describe('a value of an SSH node pool', () => {
  const server = `ssh:
  provision_timeout: 10
  pod_config: {metadata: {labels: {team: all}}}
  context_configs:
    pool:
      provision_timeout: 20
      pod_config: {metadata: {annotations: {zone: pool}}}
    ssh-other:
      provision_timeout: 30
`;

  it.for(['pool', 'ssh-pool'])('replaces a mapping instead of merging it, for %s', (region) => {
    expect(value({ server }, 'ssh.pod_config', { region })).toEqual({
      metadata: { annotations: { zone: 'pool' } },
    });
  });

  it('is looked up by the name of the context for keys other than pod_config, and says so', () => {
    const { value: found, lookedAt, notes } = answer({ server }, 'ssh.provision_timeout', { region: 'pool' });
    expect(found).toBe(10);
    expect(lookedAt.at(-1)).toEqual({
      where: 'configuration',
      key: ['ssh', 'context_configs', 'pool', 'provision_timeout'],
      state: 'not read',
    });
    expect(notes).toEqual([
      'ssh.context_configs.pool.provision_timeout is set, but SkyPilot does not look there for this key',
    ]);
    expect(value({ server }, 'ssh.provision_timeout', { region: 'other' })).toBe(30);
  });
});

describe('a value of a region', () => {
  const server = `nebius:
  use_internal_ips: true
  ssh_proxy_command: {eu-north1: ssh -W}
  region_configs:
    eu-north1: {project_id: e00, fabric: fabric-3}
    eu-west1: {project_id: e01, filesystems: [{filesystem_id: one}, {filesystem_id: two}]}
oci:
  region_configs:
    default: {vcn_ocid: general, compartment_ocid: general, image_tag_gpu: image}
    ap-seoul-1: {vcn_ocid: seoul}
aws:
  ssh_proxy_command: jump
  labels: {team: all}
`;

  it.for<[string, string | undefined, unknown]>([
    ['nebius.project_id', 'eu-north1', 'e00'],
    ['nebius.project_id', 'eu-west1', 'e01'],
    ['nebius.use_internal_ips', 'eu-west1', true],
    ['nebius.filesystems[1].filesystem_id', 'eu-west1', 'two'],
    ['nebius.ssh_proxy_command', 'eu-north1', 'ssh -W'],
    ['nebius.ssh_proxy_command', undefined, { 'eu-north1': 'ssh -W' }],
    ['aws.ssh_proxy_command', 'us-east-1', 'jump'],
    ['oci.vcn_ocid', 'ap-seoul-1', 'seoul'],
    ['oci.vcn_ocid', 'elsewhere', undefined],
    ['oci.compartment_ocid', 'ap-seoul-1', 'general'],
    ['oci.image_tag_gpu', 'ap-seoul-1', 'image'],
  ])('%s in %s is %j', ([key, region, expected]) => {
    expect(value({ server }, key, region === undefined ? {} : { region })).toEqual(expected);
  });
});

describe('a value of Slurm', () => {
  const server = `slurm:
  sbatch_options: {time: 1, mem: 1, qos: low}
  cpu_partition: general
  gpu_partition_map: {A100: [a], H100: [h]}
  cluster_configs:
    one:
      sbatch_options: {mem: 2, qos: mid}
      gpu_partition_map: {A100: [b]}
      partition_configs:
        fast: {sbatch_options: {qos: high}}
`;
  const task = 'slurm: {sbatch_options: {time: 9}, cpu_partition: own}';

  it('merges options of the general level, the cluster, the partition and the task', () => {
    const key = 'slurm.sbatch_options';
    expect(value({ server }, key)).toEqual({ time: 1, mem: 1, qos: 'low' });
    expect(value({ server }, key, { region: 'one' })).toEqual({ time: 1, mem: 2, qos: 'mid' });
    expect(value({ server, task }, key, { region: 'one', zone: 'fast' })).toEqual({
      time: 9,
      mem: 2,
      qos: 'high',
    });
    expect(explained({ server, task }, key, { region: 'one', zone: 'fast' })).toEqual([
      'time = 9 < task:1 < server:2',
      'mem = 2 < server:7 < server:2',
      'qos = "high" < server:10 < server:7 < server:2',
    ]);
  });

  it('takes the partition from the task first, and the map by accelerator', () => {
    expect(value({ server, task }, 'slurm.cpu_partition', { region: 'one' })).toBe('own');
    expect(value({ server }, 'slurm.gpu_partition_map', { region: 'one' })).toEqual({
      A100: ['b'],
      H100: ['h'],
    });
  });
});

describe('a queue', () => {
  const server = `kubernetes:
  quota: {queue: general}
  context_configs:
    a: {quota: {queue: a}}
    b: {kueue: {local_queue_name: b}}
    c: {quota: {queue: c}, kueue: {local_queue_name: older}}
workspaces:
  lab:
    kubernetes:
      kueue: {local_queue_name: lab}
      context_configs: {a: {kueue: {local_queue_name: lab-a}}}
`;
  const task = 'kubernetes: {quota: {queue: own}}';

  describe.for(['kubernetes.quota.queue', 'kubernetes.kueue.local_queue_name'])('by the key %s', (key) => {
    it.for<[string | undefined, string, unknown]>([
      [undefined, 'default', 'general'],
      ['a', 'default', 'a'],
      ['b', 'default', 'b'],
      ['c', 'default', 'c'],
      [undefined, 'lab', 'lab'],
      ['a', 'lab', 'lab-a'],
      ['b', 'lab', 'lab'],
    ])('in context %s of workspace %s is %s', ([region, workspace, expected]) => {
      expect(value({ server }, key, { workspace, ...(region !== undefined && { region }) })).toBe(expected);
    });
  });

  it('of a task beats those of its scope, but not that of a context', () => {
    const key = 'kubernetes.quota.queue';
    expect(value({ server, task }, key, { workspace: 'lab' })).toBe('own');
    expect(value({ server, task }, key, { workspace: 'lab', region: 'a' })).toBe('lab-a');
    expect(value({ server, task }, key, { workspace: 'default', region: 'a' })).toBe('a');
    // The workspace has no value for this context, so its scope, with that of the task, comes first.
    expect(value({ server, task }, key, { workspace: 'lab', region: 'c' })).toBe('own');
  });
});

describe('a value of a workspace', () => {
  const server = `active_workspace: lab
kubernetes:
  namespace: general
  remote_identity: general
  set_pod_resource_limits: true
  allowed_contexts: [east, west]
  autoscaler: gke
  context_configs: {east: {namespace: east, remote_identity: east}}
gcp: {project_id: general, capabilities: [compute]}
nebius: {domain: general}
workspaces:
  lab:
    kubernetes:
      allowed_contexts: [east]
      remote_identity: lab
      autoscaler: karpenter
      context_configs: {east: {namespace: lab-east}}
    gcp: {project_id: null, disabled: true, capabilities: []}
    nebius: {domain: null}
  shop: {}
  empty:
`;

  it.for<[string, Place, unknown]>([
    ['kubernetes.namespace', { region: 'east' }, 'lab-east'],
    ['kubernetes.namespace', { region: 'west' }, 'general'],
    ['kubernetes.namespace', { region: 'east', workspace: 'shop' }, 'east'],
    ['kubernetes.remote_identity', {}, 'lab'],
    ['kubernetes.remote_identity', { region: 'east', workspace: 'shop' }, 'east'],
    ['kubernetes.remote_identity', { workspace: 'empty' }, 'general'],
    ['kubernetes.allowed_contexts', {}, ['east']],
    ['gcp.project_id', {}, null],
    ['gcp.disabled', {}, true],
    ['gcp.capabilities', {}, ['compute']],
    ['nebius.domain', {}, 'general'],
  ])('%s for %j is %j', ([key, place, expected]) => {
    expect(value({ server }, key, place)).toEqual(expected);
  });

  it('is not read for other keys, and says so', () => {
    const { value: found, notes } = answer({ server }, 'kubernetes.autoscaler');
    expect(found).toBe('gke');
    expect(notes).toEqual([
      'workspaces.lab.kubernetes.autoscaler is set, but SkyPilot does not look there for this key',
    ]);
  });

  it('with a task beats the context of all workspaces, even if the workspace sets nothing', () => {
    const task = 'kubernetes: {remote_identity: own}';
    const place = { region: 'east' };
    expect(value({ server, task }, 'kubernetes.remote_identity', { ...place, workspace: 'shop' })).toBe(
      'own',
    );
    expect(value({ server, task }, 'kubernetes.remote_identity', { ...place, workspace: 'empty' })).toBe(
      'east',
    );
    expect(places({ server, task }, 'kubernetes.remote_identity', { ...place, workspace: 'shop' })).toEqual([
      'not set: workspaces.shop.kubernetes.context_configs.east.remote_identity',
      'taken: task kubernetes.remote_identity',
      'not set: workspaces.shop.kubernetes.remote_identity',
      'overridden: kubernetes.context_configs.east.remote_identity',
      'overridden: kubernetes.remote_identity',
    ]);
  });
});

describe('a value of a task', () => {
  it('comes after those of the context in pod_config and custom_metadata', () => {
    const task = `kubernetes:
  pod_config: {metadata: {labels: {zone: own}}, spec: {tolerations: [{key: own}]}}
`;
    expect(explained({ server: CONTEXTS, task }, 'kubernetes.pod_config', { region: 'east' })).toEqual([
      'metadata.labels.team = "all" < server:5',
      'metadata.labels.zone = "own" < task:2 < server:13',
      'spec.tolerations[0].key = "gpu" < server:7',
      'spec.tolerations[1].key = "spot" < server:15',
      'spec.tolerations[2].key = "own" < task:2',
    ]);
  });

  it('loses to the context elsewhere', () => {
    const task = 'kubernetes: {provision_timeout: 5}';
    expect(explained({ server: CONTEXTS, task }, 'kubernetes.provision_timeout', { region: 'west' })).toEqual(
      [' = 60 < server:17 < task:1'],
    );
    expect(value({ server: CONTEXTS, task }, 'kubernetes.provision_timeout', { region: 'east' })).toBe(5);
  });

  it('is not read for some keys that a task may set, and says so', () => {
    const server = 'kubernetes: {kueue: {admission_timeout: 60}}';
    const task = 'kubernetes: {kueue: {admission_timeout: 5}}';
    const { value: found, notes } = answer({ server, task }, 'kubernetes.kueue.admission_timeout');
    expect(found).toBe(60);
    expect(notes).toEqual([
      'the task sets kubernetes.kueue.admission_timeout, but SkyPilot does not read it from tasks',
    ]);
  });

  it('is overridden by the command line, and removed by its null', () => {
    const server = 'gcp: {vpc_name: general}';
    const task = 'gcp: {vpc_name: own}';
    expect(value({ server, task, 'command line': 'gcp: {vpc_name: given}' }, 'gcp.vpc_name')).toBe('given');
    // The null of the command line is also in the configuration itself.
    expect(value({ server, task, 'command line': 'gcp: {vpc_name: null}' }, 'gcp.vpc_name')).toBeNull();
  });

  it('has those keys of the command line that it may set itself', () => {
    const own = { value: { gcp: { vpc_name: 'task', enable_gvnic: true } }, leaves: [] };
    const commandLine = {
      value: { gcp: { vpc_name: null }, jobs: { x: 1 }, docker: { run_options: ['a'] } },
    };
    expect(taskOverrides(own, { ...commandLine, leaves: [] }).value).toEqual({
      gcp: { enable_gvnic: true },
      docker: { run_options: ['a'] },
    });
  });

  it('from the command line joins lists twice, as in SkyPilot: in the configuration and over it', () => {
    const command = 'kubernetes: {pod_config: {spec: {tolerations: [{key: given}]}}}';
    expect(
      value({ server: CONTEXTS, 'command line': command }, 'kubernetes.pod_config.spec.tolerations'),
    ).toEqual([{ key: 'gpu' }, { key: 'given' }, { key: 'given' }]);
  });
});

describe('a section', () => {
  it('holds the effective value of each key', () => {
    const task = 'kubernetes: {provision_timeout: 5, quota: {queue: own}}';
    expect(value({ server: CONTEXTS, task }, 'kubernetes', { region: 'west' })).toEqual({
      autoscaler: 'generic',
      pod_config: { metadata: { labels: { team: 'all' } }, spec: { tolerations: [{ key: 'gpu' }] } },
      provision_timeout: 60,
      quota: { queue: 'own' },
      kueue: { local_queue_name: 'own' },
    });
  });

  it('of something else is as it was merged', () => {
    expect(value({ server: 'jobs: {controller: {consolidation_mode: true}}' }, 'jobs')).toEqual({
      controller: { consolidation_mode: true },
    });
    expect(value({ server: 'allowed_clouds: [gcp]' }, 'allowed_clouds[0]')).toBe('gcp');
  });
});

describe('a key', () => {
  it.for([
    'kubernetes',
    '__proto__',
    'kubernetes.__proto__.x',
    'constructor',
    'kubernetes.pod_config.toString',
  ])('%s is not set in nothing', (key) => {
    expect(answer({}, key)).toMatchObject({ value: undefined, leaves: [] });
  });

  it('may be a name with dots', () => {
    const server = 'kubernetes: {custom_metadata: {labels: {example.org/team: a}}}';
    expect(value({ server }, 'kubernetes.custom_metadata.labels.example.org/team')).toBe('a');
  });

  it.for(['', '.', 'a.', '.a', 'a..b'])('cannot be %j', (text) => {
    expect(keyOf(text)).toBeUndefined();
  });

  it('may have positions in lists', () => {
    expect(keyOf('a.b[0].c[12][3]')).toEqual(['a', 'b', '[0]', 'c', '[12]', '[3]']);
  });
});

/** The configuration as one source, in which every path is its own origin. */
function traced(tree: Mapping, level: 'server' | 'task') {
  const originOf = (path: readonly (string | number)[]) =>
    ({ kind: 'file', file: `${level} ${path.join('.')}`, line: 1 }) as const;
  return tracedConfig(mergeSources([{ level, tree, originOf }]), level === 'task' ? 'task' : 'configuration');
}

function answers({ config, task, key, region, zone, workspace }: SkypilotQuestion) {
  const place = { workspace, region: region ?? undefined, zone: zone ?? undefined };
  const base = traced(config, 'server');
  const own = task === null ? undefined : traced(task, 'task');
  const overrides = taskOverrides<LeafSource>(own, NOTHING);
  const bare = (value: unknown) => (value === undefined ? NOTHING : { value, leaves: [] });
  return {
    trees: { configuration: base.value, task: overrides.value },
    withLeaves: () => effectiveValueOf({ ...place, config: base, task: overrides }, key),
    without: () => effectiveValueOf({ ...place, config: bare(base.value), task: bare(overrides.value) }, key),
  };
}

function scalarsOf(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(scalarsOf) : [value];
}

const attempt = <Result>(ask: () => Result): Result | 'cannot be merged' => {
  try {
    return ask();
  } catch (thrown) {
    if (thrown instanceof MergeError) {
      return 'cannot be merged';
    }
    throw thrown;
  }
};

it('the origins of an effective value change nothing in the value, and name where each leaf was written', () => {
  let found = 0;
  fc.assert(
    fc.property(skypilotQuestion, (question) => {
      const { trees, withLeaves, without } = answers(question);
      const own = attempt(withLeaves);
      const bare = attempt(without);
      if (own === 'cannot be merged' || bare === 'cannot be merged') {
        expect(own).toBe(bare);
        return;
      }
      expect(own.value).toEqual(bare.value);
      for (const { path, value, source, beats } of own.leaves) {
        found += 1;
        expect(valueAt(own.value, path)).toEqual(value);
        const written = valueAt(trees[source.where], source.key);
        // A list from one source is one leaf, also where its items were joined.
        const isList = Array.isArray(written) || Array.isArray(value);
        expect(isList ? scalarsOf(written) : [written]).toEqual(
          expect.arrayContaining(isList ? scalarsOf(value) : [value]),
        );
        expect(beats).not.toContain(source);
        for (const beaten of beats) {
          expect(valueAt(trees[beaten.where], beaten.key)).not.toBeUndefined();
        }
      }
      const isSet = own.value !== undefined;
      expect(own.leaves.length > 0).toBe(isSet);
      expect(own.lookedAt.some(({ state }) => state === 'taken')).toBe(isSet);
    }),
    { numRuns: 75 },
  );
  expect(found).toBeGreaterThan(50);
});
