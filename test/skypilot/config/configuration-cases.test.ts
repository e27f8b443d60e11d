/** What SkyPilot's own tests of its configuration expect, as cases for ours. */
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import type { Mapping } from '../../../src/base/yaml/tree.ts';
import { MergeError, merge } from '../../../src/config/merge.ts';
import { Config } from '../../../src/skypilot/config/config.ts';
import { taskConfig } from '../../../src/skypilot/config/config-file.ts';
import { skypilotRules } from '../../../src/skypilot/config/config-schema.ts';
import { findSources } from '../../../src/skypilot/config/config-sources.ts';
import { effectiveValueOf } from '../../../src/skypilot/config/effective/effective-value.ts';
import {
  type LeafSource,
  NOTHING,
  type Traced,
  taskOverrides,
  tracedConfig,
} from '../../../src/skypilot/config/effective/traced.ts';
import { type Level, mergeSources, type Source } from '../../../src/skypilot/config/layers.ts';
import { OverrideKeyError } from '../../../src/skypilot/config/permitted-keys.ts';
import { validateConfig, validateTask } from '../../../src/skypilot/schema/validate.ts';

const code = () => ({ kind: 'code' }) as const;
const source = (level: Level, tree: Mapping): Source => ({ level, tree, originOf: code });
const merged = (trees: Partial<Record<Level, Mapping>>) =>
  mergeSources(Object.entries(trees).map(([level, tree]) => source(level as Level, tree)));
const traced = (tree: Mapping): Traced<LeafSource> => tracedConfig(merged({ server: tree }));

interface Place {
  readonly region?: string;
  readonly workspace?: string;
  readonly task?: Mapping;
}

/** What SkyPilot takes for a key such as `kubernetes.namespace`. */
function effective(
  config: Mapping,
  key: string,
  { region, workspace = 'default', task }: Place = {},
): unknown {
  const overrides = taskOverrides(task === undefined ? undefined : traced(task), NOTHING);
  const reading = { config: traced(config), task: overrides, workspace, region, zone: undefined };
  return effectiveValueOf(reading, key.split('.')).value;
}

/** One after the other below `kubernetes.pod_config`. */
function pods(base: Mapping, over: Mapping): unknown {
  const tree = (pod: Mapping) => ({ kubernetes: { pod_config: pod } });
  return Config.fromDict(merge(tree(base), tree(over), skypilotRules)).getNested([
    'kubernetes',
    'pod_config',
  ]);
}

const mistakes = (tree: Mapping) => validateConfig(tree, code).map(formatProblem);
const taskMistakes = (tree: Mapping) => validateTask(tree, code).map(formatProblem);

const SITE = {
  aws: { vpc_name: 'vpc-1', use_internal_ips: true, ssh_proxy_command: 'ssh -W %h:%p', disk_encrypted: true },
  gcp: {
    vpc_name: 'vpc-1',
    use_internal_ips: true,
    managed_instance_group: { run_duration: 30, provision_timeout: 600 },
  },
  kubernetes: {
    pod_config: {
      metadata: { annotations: { mine: 'a' } },
      spec: { runtimeClassName: 'nvidia', imagePullSecrets: [{ name: 'first' }] },
    },
  },
  workspaces: { train: { gcp: { project_id: 'p' } } },
};

describe('a configuration', () => {
  it('grows by nested keys, and creates the mappings between', () => {
    const config = Config.fromDict(null);
    config.setNested(['aws', 'ssh_proxy_command'], 'x');
    config.setNested(['aws', 'use_internal_ips'], true);
    expect(config.getNested(['admin_policy'], 'default')).toBe('default');
    config.setNested(['a', 'b', 'c', 'd'], 'deep');
    expect(config.toDict()).toEqual({
      aws: { ssh_proxy_command: 'x', use_internal_ips: true },
      a: { b: { c: { d: 'deep' } } },
    });
  });

  it('keeps the original when a copy is changed, and a null through writing and reading', () => {
    const config = Config.fromDict(SITE);
    const copy = Config.fromDict(config);
    copy.setNested(['aws', 'ssh_proxy_command'], null);
    expect(config.getNested(['aws', 'ssh_proxy_command'])).toBe('ssh -W %h:%p');
    const again = Config.fromDict(JSON.parse(JSON.stringify(copy)));
    expect(again.getNested(['aws', 'ssh_proxy_command'], 'default')).toBeNull();
    expect(again.getNested(['aws', 'vpc_name'])).toBe('vpc-1');
    again.popNested(['aws', 'ssh_proxy_command']);
    again.popNested(['aws', 'use_internal_ips']);
    expect(again.getNested(['aws', 'use_internal_ips'], 'default')).toBe('default');
    again.setNested(['aws', 'ssh_proxy_command'], 'new');
    expect(again.getNested(['aws', 'ssh_proxy_command'])).toBe('new');
  });

  it('returns a null of a region, not the default', () => {
    const config = Config.fromDict({ aws: { ssh_proxy_command: { 'eu-west-1': null } } });
    expect(config.getNested(['aws', 'ssh_proxy_command', 'eu-west-1'], 'default')).toBeNull();
  });

  it('is read with overrides, also of keys that it does not have', () => {
    const over = { kubernetes: { pod_config: { metadata: { labels: { env: 'dev' } } } } };
    expect(Config.fromDict({}).getNested(['kubernetes', 'pod_config'], undefined, over)).toEqual(
      over.kubernetes.pod_config,
    );
  });

  const aws = { vpc_name: 'own', security_group: 'own' };
  const AWS = [['aws', 'vpc_name']];
  it.for<[Mapping, string[][], string | null]>([
    [{ aws: { vpc_name: 'x' } }, AWS, null],
    [{ aws: { vpc_name: 'x' }, gcp: { project_id: 'x' } }, AWS, 'gcp'],
    [{ aws: { vpc_name: 'x' }, gcp: { project_id: 'x' } }, [...AWS, ['gcp', 'project_id']], null],
    [{ aws: { vpc_name: 'x', security_group: 'x' } }, AWS, 'aws.security_group'],
    [{ aws: { vpc_name: 'x', security_group: 'x' } }, [...AWS, ['aws', 'security_group']], null],
    [{ aws: { vpc_name: 'x', security_group: 'x' } }, [['aws']], null],
  ])('takes only allowed overrides: %j by %j', ([over, allowedOverrideKeys, refused]) => {
    const config = Config.fromDict({ aws, gcp: { project_id: 'own' } });
    const read = () => config.getNested(['aws', 'vpc_name'], null, over, { allowedOverrideKeys });
    if (refused === null) {
      expect(read()).toBe('x');
    } else {
      expect(read).toThrow(`${refused}: not in the allowed override keys`);
    }
    expect(() => config.getNested([], null, over, { disallowedOverrideKeys: AWS })).toThrow(OverrideKeyError);
  });
});

describe('the schema accepts', () => {
  it.for<Mapping>([
    SITE,
    {
      aws: {
        labels: { a: 'b' },
        ssh_proxy_command: { 'eu-west-1': null },
        use_internal_ips: true,
        vpc_name: 'abc',
      },
      jobs: { controller: { resources: { disk_size: 256 } } },
    },
    { gcp: { specific_reservations: ['projects/p/reservations/a', 'projects/p/reservations/b'] } },
    { gcp: { vpc_name: 'my-vpc' } },
    { gcp: { vpc_name: 'project-id/my-vpc' } },
    { gcp: { vpc_name: 'project-123/vpc-456' } },
  ])('%j', (tree) => {
    expect(mistakes(tree)).toEqual([]);
  });
});

describe('the schema refuses', () => {
  it.for<[Mapping, string]>([
    [{ aws: { vpc_name: 'a', not_a_field: 1 } }, 'aws.not_a_field'],
    [{ jobs: { controller: { resources: null, cloud: 'gcp', cpus: 4 } } }, 'jobs.controller'],
    [{ jobs: { controller: { resources: { cloud: 'notacloud' } } } }, 'jobs.controller.resources.cloud'],
    [{ invalid_key: 'x' }, 'invalid_key'],
    ...[
      'UPPERCASE-VPC',
      'project_id/my-vpc',
      'invalid/path/format',
      '/missing',
      'project-id/',
      'p/vpc/extra',
    ].map((name): [Mapping, string] => [{ gcp: { vpc_name: name } }, 'gcp.vpc_name']),
  ])('%j', ([tree, key]) => {
    expect(mistakes(tree).join('\n')).toContain(`in code: ${key}`);
  });

  it('a task with the old name of its config, as SkyPilot does now', () => {
    const task = { experimental: { config_overrides: { gcp: { vpc_name: 'abc' } } }, run: 'x' };
    expect(taskMistakes(task).join()).toContain('experimental');
  });

  it.for<[Mapping, string]>([
    [{ gcp: { vpc_name: { wrong: 'shape' } } }, 'gcp.vpc_name'],
    [{ jobs: { unregistered: true } }, 'jobs'],
    [{ unknown_section: null }, 'unknown_section'],
  ])('overrides within resources: %j', ([overrides, key]) => {
    const task = { run: 'x', resources: { _cluster_config_overrides: overrides } };
    expect(taskMistakes(task).join()).toContain(key);
  });

  it('no null within an override, which clears one', () => {
    const task = { run: 'x', resources: { _cluster_config_overrides: { gcp: { vpc_name: null } } } };
    expect(taskMistakes(task)).toEqual([]);
    expect(taskConfig(task, code)).toMatchObject({ tree: { gcp: { vpc_name: null } }, problems: [] });
  });
});

describe('a client over a server', () => {
  it('overrides values, and nothing if it has none', () => {
    const user = { aws: { vpc_name: 'other', ssh_proxy_command: 'other' } };
    expect(merged({ server: SITE, user }).tree).toMatchObject(user);
    expect(merged({ server: SITE, user: {} }).tree).toEqual(SITE);
    expect(merged({ user }).tree).toEqual(user);
  });

  it('is not told about a key of the server with the same value, but about another', () => {
    const reasons = (user: Mapping) =>
      merged({ server: { allowed_clouds: ['aws'] }, user }).dropped.map(({ key, reason }) => [key, reason]);
    expect(reasons({ allowed_clouds: ['aws'] })).toEqual([['allowed_clouds', 'same']]);
    expect(reasons({ allowed_clouds: ['gcp'] })).toEqual([['allowed_clouds', 'server']]);
  });

  it('does not reach the server with its own address and policy', () => {
    const user = { api_server: { endpoint: 'http://h' }, admin_policy: 'a.B', aws: { vpc_name: 'v' } };
    expect(merged({ user }).tree).toEqual({ aws: { vpc_name: 'v' } });
  });

  it('has a project over its user, and lists are replaced', () => {
    const user = { gcp: { labels: { user: 'yes', from: 'user' }, specific_reservations: ['a', 'b'] } };
    const project = { gcp: { labels: { project: 'yes', from: 'project' }, specific_reservations: ['c'] } };
    expect(merged({ user, project }).tree).toEqual({
      gcp: { labels: { user: 'yes', from: 'project', project: 'yes' }, specific_reservations: ['c'] },
    });
  });
});

describe('--config', () => {
  const read = (...config: string[]) =>
    mergeSources(findSources({ user: '/dev/null', project: '/dev/null', config }, {}).sources).tree;

  it.for<[string[], Mapping]>([
    [['key1=value1', 'key2=value2'], { key1: 'value1', key2: 'value2' }],
    [['key1.key2=value1'], { key1: { key2: 'value1' } }],
    [['key1=[1,2,3]'], { key1: [1, 2, 3] }],
    [['key1.key2={"key3": "value3"}'], { key1: { key2: { key3: 'value3' } } }],
    [
      ['key1.key2={"key3": [1,2,3], "key4": {"key5": "value5"}}'],
      { key1: { key2: { key3: [1, 2, 3], key4: { key5: 'value5' } } } },
    ],
    [['key1="a,b,c=d"'], { key1: 'a,b,c=d' }],
  ])('%j', ([config, tree]) => {
    expect(read(...config)).toEqual(tree);
  });

  it.for(['key2', 'key2=', '=value'])('is refused as %j', (pair) => {
    expect(() => read('key1=value1', pair)).toThrow('--config: expected');
  });
});

describe('a task', () => {
  const TASK = {
    config: {
      docker: { run_options: ['-v /tmp:/tmp'] },
      kubernetes: {
        pod_config: {
          metadata: { labels: { key: 'value' }, annotations: { abc: 'def' } },
          spec: { imagePullSecrets: [{ name: 'second' }] },
        },
        provision_timeout: 100,
      },
      gcp: { managed_instance_group: { run_duration: 10 } },
      nvidia_gpus: { disable_ecc: true },
    },
  };

  it('changes the pods and instances of the site, and drops its pull secrets', () => {
    const { tree: task } = taskConfig(TASK, code);
    expect(effective(SITE, 'kubernetes.pod_config', { task })).toEqual({
      metadata: { labels: { key: 'value' }, annotations: { mine: 'a', abc: 'def' } },
      spec: { runtimeClassName: 'nvidia', imagePullSecrets: [{ name: 'second' }] },
    });
    expect(effective(SITE, 'gcp.managed_instance_group', { task })).toEqual({
      run_duration: 10,
      provision_timeout: 600,
    });
    expect(effective(SITE, 'gcp.vpc_name', { task })).toBe('vpc-1');
    expect(effective(SITE, 'docker.run_options', { task })).toEqual(['-v /tmp:/tmp']);
    expect(effective(SITE, 'nvidia_gpus.disable_ecc', { task })).toBe(true);
    expect(merged({ server: SITE, task }).dropped).toEqual([]);
  });

  it('is overridden by those keys of the command line that it may set itself', () => {
    const task = traced({ gcp: { vpc_name: 'task', enable_gvnic: true } });
    const commandLine = traced({
      gcp: { vpc_name: null },
      jobs: { x: true },
      docker: { run_options: ['a'] },
    });
    expect(taskOverrides(task, commandLine).value).toEqual({
      gcp: { enable_gvnic: true },
      docker: { run_options: ['a'] },
    });
  });
});

describe('the value of a key', () => {
  const CONTEXTS = {
    kubernetes: {
      pod_config: { metadata: { labels: { all: '1' } } },
      custom_metadata: { labels: { global: 'g' } },
      autoscaler: 'generic',
      context_configs: {
        a: {
          pod_config: { metadata: { labels: { a: '2' } } },
          custom_metadata: { labels: { own: 'a' } },
          autoscaler: 'gke',
        },
        b: { provision_timeout: 60 },
      },
    },
  };
  const REGIONS = {
    nebius: {
      use_internal_ips: true,
      region_configs: { north: { project_id: 'p0', fabric: 'f3' }, west: { filesystems: [{}, {}] } },
    },
    oci: { region_configs: { default: { vcn_ocid: 'd' }, seoul: { vcn_ocid: 's' } } },
  };
  const SSH = {
    ssh: {
      pod_config: { metadata: { labels: { default: 'true' } } },
      provision_timeout: 1800,
      context_configs: {
        'ssh-own': { pod_config: { metadata: { labels: { cluster: 'own' } } }, provision_timeout: 3600 },
      },
    },
  };

  it.for<[Mapping, string, string | undefined, unknown]>([
    [CONTEXTS, 'kubernetes.autoscaler', 'a', 'gke'],
    [CONTEXTS, 'kubernetes.autoscaler', 'b', 'generic'],
    [CONTEXTS, 'kubernetes.provision_timeout', 'a', undefined],
    [CONTEXTS, 'kubernetes.provision_timeout', 'b', 60],
    [CONTEXTS, 'kubernetes.pod_config', 'a', { metadata: { labels: { all: '1', a: '2' } } }],
    [CONTEXTS, 'kubernetes.pod_config', 'b', { metadata: { labels: { all: '1' } } }],
    [CONTEXTS, 'kubernetes.custom_metadata', 'a', { labels: { global: 'g', own: 'a' } }],
    [REGIONS, 'nebius.project_id', 'north', 'p0'],
    [REGIONS, 'nebius.fabric', 'north', 'f3'],
    [REGIONS, 'nebius.use_internal_ips', 'west', true],
    [REGIONS, 'nebius.use_internal_ips', undefined, true],
    [REGIONS, 'nebius.filesystems', 'north', undefined],
    [REGIONS, 'nebius.filesystems', 'west', [{}, {}]],
    [REGIONS, 'oci.vcn_ocid', 'default', 'd'],
    [REGIONS, 'oci.vcn_ocid', 'seoul', 's'],
    [REGIONS, 'oci.vcn_ocid', 'nowhere', undefined],
    [SSH, 'ssh.provision_timeout', 'own', 3600],
    [SSH, 'ssh.provision_timeout', 'other', 1800],
    [SSH, 'ssh.provision_timeout', undefined, 1800],
    [SSH, 'ssh.pod_config', undefined, { metadata: { labels: { default: 'true' } } }],
  ])('depends on the context or region: %#', ([config, key, region, value]) => {
    expect(effective(config, key, region === undefined ? {} : { region })).toEqual(value);
  });

  it('follows a change of the configuration, of the context or of all', () => {
    const path = ['kubernetes', 'context_configs', 'a', 'custom_metadata', 'labels'];
    const read = (config: Config) =>
      effective(config.toDict(), 'kubernetes.custom_metadata', { region: 'a' });
    const own = Config.fromDict(CONTEXTS);
    own.setNested(path, { own: 'new', global: 'mine' });
    expect(read(own)).toEqual({ labels: { global: 'mine', own: 'new' } });
    const all = Config.fromDict(CONTEXTS);
    all.setNested(['kubernetes', 'custom_metadata', 'labels'], { global: 'new' });
    expect(read(all)).toEqual({ labels: { global: 'new', own: 'a' } });
  });

  const QUEUES = {
    kubernetes: {
      kueue: { local_queue_name: 'all' },
      context_configs: {
        a: { quota: { queue: 'a' } },
        b: { kueue: { local_queue_name: 'b' } },
        both: { quota: { queue: 'quota' }, kueue: { local_queue_name: 'kueue' } },
      },
    },
    workspaces: {
      one: {
        kubernetes: {
          kueue: { local_queue_name: 'one' },
          context_configs: { a: { kueue: { local_queue_name: 'one-a' } } },
        },
      },
      two: { kubernetes: { context_configs: { a: { kueue: { local_queue_name: 'two-a' } } } } },
    },
  };
  const queue = { kubernetes: { kueue: { local_queue_name: 'task' } } };
  const quota = { kubernetes: { quota: { queue: 'task' } } };

  it.for<[Place, string]>([
    [{}, 'all'],
    [{ region: 'a' }, 'a'],
    [{ region: 'b' }, 'b'],
    [{ region: 'both' }, 'quota'],
    [{ workspace: 'one' }, 'one'],
    [{ workspace: 'one', region: 'a' }, 'one-a'],
    [{ workspace: 'one', region: 'b' }, 'one'],
    [{ workspace: 'two' }, 'all'],
    [{ workspace: 'two', region: 'a' }, 'two-a'],
    [{ workspace: 'two', region: 'b' }, 'b'],
    [{ workspace: 'one', task: queue }, 'task'],
    [{ workspace: 'one', task: quota }, 'task'],
    [{ workspace: 'one', region: 'a', task: queue }, 'one-a'],
    [{ workspace: 'none', task: queue }, 'task'],
  ])('depends on the workspace, for a queue of either name: %j', ([place, value]) => {
    expect(effective(QUEUES, 'kubernetes.quota.queue', place)).toBe(value);
  });

  const NAMESPACES = {
    kubernetes: { namespace: 'all', context_configs: { a: { namespace: 'a' }, b: {} } },
    workspaces: {
      one: { kubernetes: { context_configs: { a: { namespace: 'one-a' }, b: { namespace: 'one-b' } } } },
      two: { kubernetes: { allowed_contexts: ['a'] } },
      three: { kubernetes: { namespace: 'three' } },
      four: { kubernetes: { namespace: 'four', context_configs: { a: { namespace: 'four-a' } } } },
    },
  };
  const namespace = { kubernetes: { namespace: 'task' } };

  it.for<[Place, unknown]>([
    [{ workspace: 'one', region: 'a' }, 'one-a'],
    [{ workspace: 'one', region: 'b' }, 'one-b'],
    [{ workspace: 'three', region: 'a' }, 'three'],
    [{ workspace: 'three', region: 'b' }, 'three'],
    [{ workspace: 'four', region: 'a' }, 'four-a'],
    [{ workspace: 'four', region: 'b' }, 'four'],
    [{ workspace: 'two', region: 'a' }, 'a'],
    [{ region: 'a' }, 'a'],
    [{ workspace: 'two', region: 'b' }, 'all'],
    [{}, 'all'],
    [{ task: namespace }, 'task'],
    [{ region: 'a', task: namespace }, 'a'],
    [{ workspace: 'three', task: namespace }, 'task'],
    [{ workspace: 'one', region: 'a', task: namespace }, 'one-a'],
  ])('depends on the workspace, for a namespace: %j', ([place, value]) => {
    expect(effective(NAMESPACES, 'kubernetes.namespace', place)).toBe(value);
    expect(effective({ kubernetes: { allowed_contexts: ['a'] } }, 'kubernetes.namespace', place)).toBe(
      place.task === undefined ? undefined : 'task',
    );
  });

  it('is gone after removing it, and what is left is valid', () => {
    const config = Config.fromDict(QUEUES);
    for (const path of [
      ['kubernetes', 'kueue'],
      ['kubernetes', 'context_configs', 'a', 'quota'],
    ]) {
      expect(config.popNested([...path, path.at(-1) === 'quota' ? 'queue' : 'local_queue_name'])).toBeTypeOf(
        'string',
      );
    }
    expect(effective(config.toDict(), 'kubernetes.quota.queue', { region: 'a' })).toBeUndefined();
    expect(mistakes(config.toDict())).toEqual([]);
  });
});

describe('a pod over a pod', () => {
  const limits = { resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '0.5' } } };
  const more = { resources: { limits: { memory: '2Gi' }, requests: { memory: '1Gi' } } };
  const both = {
    resources: { limits: { cpu: '1', memory: '2Gi' }, requests: { cpu: '0.5', memory: '1Gi' } },
  };
  const main = { name: 'ray-node', image: 'ray', command: ['bash', '-c'], args: ['x'] };
  const sidecar = { name: 'sidecar', image: 'busybox', command: ['sh'] };
  const secret = (name: string) => ({ name });

  it.for<[string, Mapping, Mapping, Mapping]>([
    ['unnamed containers merge', { containers: [limits] }, { containers: [more] }, { containers: [both] }],
    [
      'init containers of a name merge',
      { initContainers: [{ name: 'i', image: 'a' }] },
      { initContainers: [{ name: 'i', image: 'b' }] },
      { initContainers: [{ name: 'i', image: 'b' }] },
    ],
    [
      'a sidecar is added',
      { containers: [main] },
      { containers: [sidecar] },
      { containers: [main, sidecar] },
    ],
    [
      'a container of the name merges and a sidecar is added',
      { containers: [main] },
      { containers: [{ name: 'ray-node', ...more }, sidecar] },
      { containers: [{ ...main, ...more }, sidecar] },
    ],
    [
      'args and command are replaced',
      { containers: [main] },
      { containers: [{ name: 'ray-node', args: ['y'], command: ['bash', '-c'] }] },
      { containers: [{ ...main, args: ['y'] }] },
    ],
    [
      'variables and ports merge by their keys',
      { env: [{ name: 'A', value: '1' }, { name: 'B' }], ports: [{ containerPort: 80, protocol: 'TCP' }] },
      {
        env: [{ name: 'A', value: '2' }, { name: 'C' }],
        ports: [{ containerPort: 80, protocol: 'UDP' }, { containerPort: 90 }],
      },
      {
        env: [{ name: 'A', value: '2' }, { name: 'B' }, { name: 'C' }],
        ports: [{ containerPort: 80, protocol: 'UDP' }, { containerPort: 90 }],
      },
    ],
    [
      'volumes merge by name and mounts by path',
      { volumes: [{ name: 'v', hostPath: '/1' }], volumeMounts: [{ name: 'v', mountPath: '/m1' }] },
      {
        volumes: [{ name: 'v', hostPath: '/2' }, { name: 'w' }],
        volumeMounts: [{ name: 'v', mountPath: '/m2' }],
      },
      {
        volumes: [{ name: 'v', hostPath: '/2' }, { name: 'w' }],
        volumeMounts: [
          { name: 'v', mountPath: '/m1' },
          { name: 'v', mountPath: '/m2' },
        ],
      },
    ],
    [
      'mounts of one volume at two paths stay two',
      { volumeMounts: [] },
      {
        volumeMounts: [
          { name: 'v', mountPath: '/a', subPath: 'a' },
          { name: 'v', mountPath: '/b', subPath: 'b' },
        ],
      },
      {
        volumeMounts: [
          { name: 'v', mountPath: '/a', subPath: 'a' },
          { name: 'v', mountPath: '/b', subPath: 'b' },
        ],
      },
    ],
    [
      'claims of a container merge by name, the rest is appended',
      { resourceClaims: [{ name: 'gpu', a: 1 }], tolerations: [{ key: 'a' }] },
      { resourceClaims: [{ name: 'gpu', b: 2 }, { name: 'nic' }], tolerations: [{ key: 'a' }] },
      {
        resourceClaims: [{ name: 'gpu', a: 1, b: 2 }, { name: 'nic' }],
        tolerations: [{ key: 'a' }, { key: 'a' }],
      },
    ],
    ...[[], [secret('b')], [secret('b'), secret('c')]].flatMap(
      (over): [string, Mapping, Mapping, Mapping][] => [
        [
          'pull secrets are replaced',
          { imagePullSecrets: [secret('a')] },
          { imagePullSecrets: over },
          { imagePullSecrets: over },
        ],
        [
          'pull secrets replace none',
          { imagePullSecrets: [] },
          { imagePullSecrets: over },
          { imagePullSecrets: over },
        ],
      ],
    ),
    [
      'pull secrets replace a mapping',
      { imagePullSecrets: secret('a') },
      { imagePullSecrets: [secret('b')] },
      { imagePullSecrets: [secret('b')] },
    ],
    ...[{ runAsUser: 0 }, [{ key: 'a' }], 'x'].map((value): [string, Mapping, Mapping, Mapping] => [
      'null clears anything',
      { securityContext: value },
      { securityContext: null },
      { securityContext: null },
    ]),
    ...[{ a: 1 }, [{ name: 'x' }], 'x', null].map((value): [string, Mapping, Mapping, Mapping] => [
      'a key that the base has not is added',
      { other: 1 },
      { containers: value },
      { other: 1, containers: value },
    ]),
    [
      'a single value may have another type',
      { runtimeClassName: 'nvidia', replicas: 1 },
      { runtimeClassName: 'gvisor', replicas: '2' },
      { runtimeClassName: 'gvisor', replicas: '2' },
    ],
  ])('%s: %#', ([, base, over, result]) => {
    expect(pods(base, over)).toEqual(result);
    expect(pods({ spec: base }, { spec: over })).toEqual({ spec: result });
  });

  it('over itself does not change, except for lists that are appended', () => {
    const pod = {
      metadata: { annotations: { a: 'b' } },
      spec: {
        containers: [{ name: 'c', env: [{ name: 'A', value: '1' }], args: ['x'] }],
        volumes: [{ name: 'v', emptyDir: {} }],
        imagePullSecrets: [secret('a')],
      },
    };
    expect(pods(pod, pod)).toEqual(pod);
    const cleared = { spec: { containers: [{ imagePullPolicy: 'IfNotPresent' }], imagePullSecrets: [] } };
    expect(pods(cleared, cleared)).toEqual(cleared);
  });

  it.for<[Mapping, Mapping]>([
    [{ containers: { name: 'ray-node' } }, { containers: [{ name: 'other' }] }],
    [{ tolerations: 'oops' }, { tolerations: [{ key: 'a' }] }],
    [{ imagePullSecrets: [secret('a')] }, { imagePullSecrets: secret('b') }],
    [{ imagePullSecrets: [secret('a')] }, { imagePullSecrets: 'oops' }],
  ])('of another shape is a mistake: %j under %j', ([base, over]) => {
    expect(() => pods(base, over)).toThrow(MergeError);
  });
});
