import { z } from 'zod';
import {
  AdminPolicy,
  AllowedInfra,
  Config,
  expandResources,
  FORERUNNERS,
  type Infra,
  infraOf,
  isMapping,
  type Mapping,
  MutatedUserRequest,
  needsOneOf,
  PolicyRejected,
  type PolicyServices,
  sbatchOptionsOf,
  taskConfigsOf,
  type UserRequest,
} from '../src/skypilot/index.ts';

/** A cluster and a partition. */
const PARTITION = /^[^\s,:/]+\/[^\s,:/]+$/;
const PARTITIONS = /^[^\s,:/]+\/[^\s,:/]+(?: +[^\s,:/]+\/[^\s,:/]+)*$/;

const options = z
  .object({
    slurm_partition: z.array(z.string().regex(PARTITION)).default([]).meta({
      description:
        'The partitions of Slurm in which tasks may run, as cluster/partition. * stands for any characters in a name.',
      expected: 'a comma-separated list such as lab/gpu,lab/cpu',
    }),
    slurm_partition_workspaces: z.record(z.string(), z.string().regex(PARTITIONS)).default({}).meta({
      description:
        'The partitions for single workspaces, instead of slurm_partition. Several are separated by spaces.',
      pairs: 'workspace:cluster/partition',
      expected: 'comma-separated pairs of a workspace and its partitions, such as research:lab/gpu lab/cpu',
    }),
  })
  .superRefine(needsOneOf('SlurmPartitionPolicy', 'slurm_partition', 'slurm_partition_workspaces'));

const ROUTING_OPTIONS = ['partition', 'clusters', 'cluster'];

/**
 * Limits Slurm partitions, for everyone or by workspace. A task without a partition is limited to the allowed
 * ones of its cluster. A task without a cloud is refused, because SkyPilot may choose Slurm.
 */
export class SlurmPartitionPolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;

  readonly #everyones: readonly string[];
  readonly #workspaces: ReadonlyMap<string, readonly string[]>;

  constructor(values: z.infer<typeof options>, services: PolicyServices) {
    super(values, services);
    this.#everyones = values.slurm_partition;
    this.#workspaces = new Map(
      Object.entries(values.slurm_partition_workspaces).map(([name, text]) => [name, text.split(/ +/)]),
    );
  }

  override validateAndMutate(userRequest: UserRequest): MutatedUserRequest {
    const { task, skypilotConfig, requestName } = userRequest;
    const configs = taskConfigsOf(task).map(({ config }) => config);
    const entries = this.#entriesFor(userRequest, configs);
    const allowed = new AllowedInfra(entries.map((entry) => `slurm/${entry}`));
    for (const config of [skypilotConfig.toDict(), ...configs]) {
      for (const holder of slurmConfigsOf(config)) {
        refuseRouting(holder.sbatch_options);
      }
    }
    for (const config of configs) {
      refusePartition(config, entries);
    }
    expandResources(task, (resources) => changesOf(infraOf(resources), allowed, requestName === 'exec'));
    return new MutatedUserRequest(task, skypilotConfig);
  }

  /** The allowed partitions. A task may also name a workspace itself: it must be allowed in all of them. */
  #entriesFor({ skypilotConfig, requestName }: UserRequest, configs: readonly Mapping[]): readonly string[] {
    const named = [skypilotConfig, ...configs.map((config) => Config.fromDict(config))]
      .map((config) => config.getNested(['active_workspace']))
      .filter((name) => name !== undefined && name !== null);
    if (named.length === 0 && FORERUNNERS.has(requestName)) {
      return [...new Set([...this.#everyones, ...[...this.#workspaces.values()].flat()])];
    }
    const [first = [], ...others] = (named.length === 0 ? ['default'] : named).map(
      (name) => this.#workspaces.get(String(name)) ?? this.#everyones,
    );
    return first.filter((entry) => others.every((list) => list.includes(entry)));
  }
}

function changesOf(asked: Infra, allowed: AllowedInfra, isExec: boolean): Mapping[] {
  if (asked.cloud === null && !isExec) {
    throw allowed.rejection('Tasks must name the cloud here, because SkyPilot may choose Slurm.');
  }
  const unnamed = 'Tasks must name their partition of Slurm here.';
  return asked.cloud === 'slurm' ? allowed.changesFor(asked, { isExec, unnamed }) : [{}];
}

/** The Slurm configuration, and those of its clusters and their partitions. */
function slurmConfigsOf({ slurm }: Mapping): Mapping[] {
  const below = (holder: Mapping, name: string) => {
    const members = holder[name];
    return isMapping(members) ? Object.values(members).filter(isMapping) : [];
  };
  if (!isMapping(slurm)) {
    return [];
  }
  const clusters = below(slurm, 'cluster_configs');
  return [slurm, ...clusters, ...clusters.flatMap((cluster) => below(cluster, 'partition_configs'))];
}

/** Refuses sbatch options that select another partition or cluster, also after another option. */
function refuseRouting(sbatchOptions: unknown): void {
  for (const { given, name, isPlain } of sbatchOptionsOf(sbatchOptions)) {
    const isRouting = name === 'M' || ROUTING_OPTIONS.some((option) => option.startsWith(name.toLowerCase()));
    if (!isPlain || isRouting) {
      throw new PolicyRejected(
        `slurm.sbatch_options may not have ${given} here: name the partition in infra, as slurm/cluster/partition.`,
      );
    }
  }
}

/** Refuses a partition for tasks with or without accelerators that no allowed entry has. */
function refusePartition(config: Mapping, entries: readonly string[]): void {
  const allowed = new AllowedInfra(entries.map((entry) => `slurm/*/${entry.slice(entry.indexOf('/') + 1)}`));
  for (const { cpu_partition: forCpus, gpu_partition_map: forGpus } of slurmConfigsOf(config)) {
    const named = [forCpus ?? [], isMapping(forGpus) ? Object.values(forGpus) : []].flat(2);
    for (const zone of named) {
      if (typeof zone !== 'string' || !allowed.covers({ cloud: 'slurm', region: null, zone })) {
        throw new PolicyRejected(
          `Tasks may not use the partition ${String(zone)} here. Use one of: ${entries.join(', ')}.`,
        );
      }
    }
  }
}
