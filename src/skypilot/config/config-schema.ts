/**
 * The merge rules of SkyPilot's configuration, and which source may set which keys. Source: SkyPilot docs,
 * "Configuration Sources and Overrides", and the behaviour of SkyPilot 0.13.
 */

import { formatOrigin, type Origin } from '../../base/errors.ts';
import type { Mapping, Path } from '../../base/yaml/tree.ts';
import { generalRules, type ListRule, type MergeSchema } from '../../config/merge.ts';

/** `['jobs', 'controller']` is that key and everything below it. */
export type Key = readonly string[];

/** Lists of a pod whose items have an identifying field: items with the same value are merged. */
const NAMED_ITEMS: ReadonlyMap<string, string> = new Map([
  ['initContainers', 'name'],
  ['ephemeralContainers', 'name'],
  ['volumes', 'name'],
  ['volumeMounts', 'mountPath'],
  ['resourceClaims', 'name'],
  ['claims', 'name'],
  ['env', 'name'],
  ['hostAliases', 'ip'],
  ['topologySpreadConstraints', 'topologyKey'],
  ['ports', 'containerPort'],
  ['volumeDevices', 'devicePath'],
]);

function podList(name: string): ListRule {
  switch (name) {
    case 'containers':
      return { kind: 'match', key: 'name', unnamed: 'first' };
    case 'args':
    case 'command':
    // Credentials: joining them would keep those that the overlay is to drop.
    case 'imagePullSecrets':
      return { kind: 'replace' };
    default: {
      const key = NAMED_ITEMS.get(name);
      return key === undefined ? { kind: 'append' } : { kind: 'match', key, unnamed: 'append' };
    }
  }
}

const podRules: MergeSchema = { list: podList, member: () => podRules, strictKinds: true };

const PATCHED = new Set(['custom_metadata', 'pod_config']);

/** Applies only directly below `kubernetes`: in `context_configs` and `ssh`, lists are replaced. */
const kubernetesRules: MergeSchema = {
  list: generalRules.list,
  member: (name) => (PATCHED.has(name) ? podRules : skypilotRules),
};

/**
 * Mappings merge and lists are replaced. In `pod_config` and `custom_metadata` of any `kubernetes`, lists are
 * concatenated, and items with the same name merge.
 */
export const skypilotRules: MergeSchema = {
  list: generalRules.list,
  member: (name) => (name === 'kubernetes' ? kubernetesRules : skypilotRules),
};

const keys = (names: readonly string[]): readonly Key[] => names.map((name) => name.split('.'));

/** Keys that only the server may set. Otherwise a client's policy could replace the server's. */
export const SERVER_KEYS = keys([
  'admin_policy',
  'api_server',
  'allowed_clouds',
  'workspaces',
  'rbac',
  'db',
  'daemons',
  'metrics',
  'jobs.controller.consolidation_mode',
  'serve.controller.consolidation_mode',
  'jobs.controller.controller_logs_gc_retention_hours',
  'jobs.controller.task_logs_gc_retention_hours',
  'slurm.cluster_configs',
  'slurm.submit_as_user',
  'slurm.username_map',
]);

/** Keys of clients, within one of the server. SkyPilot's client uses them itself and does not send them. */
export const CLIENT_KEYS = keys(['api_server.endpoint', 'api_server.service_account_token']);

/** Keys that the `config` of a task may set. */
export const TASK_KEYS = keys([
  'docker.run_options',
  'nvidia_gpus.disable_ecc',
  'ssh.custom_metadata',
  'ssh.pod_config',
  'ssh.provision_timeout',
  'kubernetes.custom_metadata',
  'kubernetes.pod_config',
  'kubernetes.provision_timeout',
  'kubernetes.dws',
  'kubernetes.kueue',
  'kubernetes.quota',
  'kubernetes.remote_identity',
  'kubernetes.enable_docker',
  'kubernetes.set_pod_resource_limits',
  'azure.remote_identity',
  'azure.vpc_name',
  'gcp.vpc_name',
  'gcp.subnet_names',
  'gcp.managed_instance_group',
  'gcp.enable_gvnic',
  'gcp.enable_gpu_direct',
  'gcp.placement_policy',
  'vast.datacenter_only',
  'vast.create_instance_kwargs',
  'slurm.sbatch_options',
  'slurm.quota',
  'slurm.cpu_partition',
  'active_workspace',
]);

/** Lowest precedence first. */
export const LEVELS = ['server', 'user', 'project', 'task', 'command line'] as const;
export type Level = (typeof LEVELS)[number];

/** The content of one source. A level may have several: each `--config key=value` is one. */
export interface Source {
  readonly level: Level;
  /** Shown in place of the level. */
  readonly name?: string;
  readonly tree: Mapping;
  /** The same, with dates as SkyPilot reads them: `YamlDocument.typed`. Default: `tree`. */
  readonly typed?: Mapping;
  /** The file and line of the value at a path. */
  readonly originOf: (path: Path) => Origin;
}

export interface Place {
  readonly level: Level;
  readonly name?: string;
  readonly origin: Origin;
}

/** `user ~/.sky/config.yaml:3` */
export function formatPlace({ level, name = level, origin }: Place): string {
  const place = formatOrigin(origin);
  return origin.kind === 'command line' ? place : `${name} ${place}`;
}
