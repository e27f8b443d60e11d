/**
 * The hardware on which a task may run: every alternative. Refuses what it cannot read, and accelerators that
 * are requested without SkyPilot's knowledge. Source: SkyPilot 0.13, resources of its tasks.
 */
import { isMapping } from '../../base/yaml/tree.ts';
import { PolicyRejected } from '../admin-policy.ts';
import type { Task } from '../request/user-request.ts';
import { acceleratorsOf, isPlainAccelerator } from '../task/accelerators.ts';
import { infraOf } from '../task/infra.ts';
import { type Resources, resourcesOf } from '../task/resources.ts';
import { type SbatchOption, sbatchOptionsOf } from '../task/sbatch-options.ts';
import type { Hardware, HardwareRequest } from './contract.ts';

/** Maximum number of alternatives of a task; more are refused. */
const MAX_ALTERNATIVES = 500;
const MAX_NODES = 100_000;

/** `clouds`: the clouds that SkyPilot may choose from. Default: all. @throws PolicyRejected */
export function hardwareOf(
  task: Task,
  clouds: readonly string[] | null = null,
): readonly [Hardware, ...Hardware[]] {
  const nodes = nodesOf(task.num_nodes);
  const common = { clouds, mayFallBack: replacesSpot(task.service) };
  const all = resourcesOf(task).flatMap((resources) =>
    alternativesOf(resources, nodes).map((hardware) => ({
      ...hardware,
      requirements: requirementsOf(resources, common),
    })),
  );
  const [first, ...others] = all;
  if (first === undefined || all.length > MAX_ALTERNATIVES) {
    throw new PolicyRejected(`resources: expected at most ${MAX_ALTERNATIVES} alternatives.`);
  }
  return [first, ...others];
}

function alternativesOf(resources: Resources, nodes: number): Hardware[] {
  const { cloud, region: where } = infraOf(resources);
  const region = where?.toLowerCase() ?? null;
  const instanceType = textOf('instance_type', resources.instance_type);
  const isSpot = isTrue('use_spot', resources.use_spot);
  const common = { nodes, cloud, region, instanceType, isSpot };
  const accelerators = acceleratorsOf(resources);
  const asked = accelerators.filter(({ count }) => count > 0);
  if (asked.length === 0) {
    return [{ ...common, accelerators: null }];
  }
  if (!asked.every(({ name, memory }) => memory === undefined && isPlainAccelerator(name))) {
    throw new PolicyRejected(
      'resources.accelerators: expected names of accelerators in full, such as A100:8.',
    );
  }
  return asked.map((accelerator) => ({ ...common, accelerators: accelerator }));
}

function requirementsOf(
  resources: Resources,
  common: Pick<HardwareRequest, 'clouds' | 'mayFallBack'>,
): HardwareRequest {
  const { cpus, memory, max_hourly_cost: max, accelerator_args: args } = resources;
  return {
    ...common,
    cpus: sizeOf(cpus),
    memory: sizeOf(memory),
    maxPrice: typeof max === 'number' && max > 0 ? max : null,
    hasTpuHost: isMapping(args) && Object.hasOwn(args, 'tpu_vm') && args.tpu_vm !== true,
  };
}

/** As written: parsed only where sizes are compared. */
function sizeOf(value: unknown): string | null {
  return value === undefined || value === null ? null : String(value).slice(0, 100);
}

/** Whether a service replaces spot instances with others. */
function replacesSpot(service: unknown): boolean {
  const policy = isMapping(service) ? service.replica_policy : undefined;
  return (
    isMapping(policy) &&
    [policy.dynamic_ondemand_fallback, policy.base_ondemand_fallback_replicas].some(
      (value) => value !== undefined && value !== null && value !== false && value !== 0,
    )
  );
}

function textOf(name: string, value: unknown): string | null {
  if (value === undefined || value === null) {
    return null;
  }
  if (typeof value !== 'string' || value.length > 1000) {
    throw new PolicyRejected(`resources.${name}: expected a text.`);
  }
  return value.trim() === '' ? null : value.trim();
}

function isTrue(name: string, value: unknown): boolean {
  if (value === undefined || value === null || typeof value === 'boolean') {
    return value ?? false;
  }
  throw new PolicyRejected(`resources.${name}: expected true or false.`);
}

function nodesOf(value: unknown): number {
  if (value === undefined || value === null) {
    return 1;
  }
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > MAX_NODES) {
    throw new PolicyRejected(`num_nodes: expected a whole number from 1 to ${MAX_NODES}.`);
  }
  return value;
}

/**
 * Resources of a container that are no accelerators, such as network cards; all others may be, also those of
 * `smarter-devices`, which gives out any device file.
 */
const NO_ACCELERATOR =
  /^(?:(?:cpu|memory|ephemeral-storage|storage|hugepages-.*|smarter-devices\/fuse)$|rdma\/|vpc\.amazonaws\.com\/|networking\.gke\.io\.networks\/)/i;
/** Options of sbatch that request devices, or multiply them. */
const SLURM_DEVICES = ['gres', 'gpus', 'tres', 'exclusive', 'array', 'nodes'];
/** Claims of a container in addition to its limits. */
const CLAIMS = new Set(['resourceClaims', 'claims']);
const MAX_DEPTH = 40;

/**
 * Refuses accelerators that only the configuration requests: in a `pod_config`, or in options of Slurm.
 * SkyPilot does not see them, so they cannot be counted. @throws PolicyRejected
 */
export function refuseHiddenDevices(...trees: readonly unknown[]): void {
  for (const tree of trees) {
    search(tree, 0);
  }
}

function search(value: unknown, depth: number): void {
  if (depth > MAX_DEPTH) {
    throw new PolicyRejected('The configuration is nested too deeply.');
  }
  if (Array.isArray(value)) {
    for (const item of value) {
      search(item, depth + 1);
    }
    return;
  }
  if (!isMapping(value)) {
    return;
  }
  for (const [name, below] of Object.entries(value)) {
    if ((name === 'limits' || name === 'requests') && isMapping(below)) {
      refuse(
        Object.keys(below).find((one) => !NO_ACCELERATOR.test(one)),
        'accelerators of a pod_config',
      );
    }
    if (name === 'sbatch_options') {
      refuse(sbatchOptionsOf(below).find(asksForDevices)?.given, 'accelerators in sbatch_options');
    }
    if (CLAIMS.has(name) && Array.isArray(below) && below.length > 0) {
      refuse(name, 'accelerators of a pod_config');
    }
    search(below, depth + 1);
  }
}

function asksForDevices({ name, isPlain }: SbatchOption): boolean {
  return (
    !isPlain ||
    name === 'G' ||
    name === 'N' ||
    // With `ntasks`, which alone requests none.
    name.startsWith('ntasks-per-g') ||
    SLURM_DEVICES.some((option) => name.startsWith(option) || (name.length > 1 && option.startsWith(name)))
  );
}

function refuse(name: string | undefined, what: string): void {
  if (name !== undefined) {
    throw new PolicyRejected(
      `${name.slice(0, 100)}: ${what} cannot be counted; ask for them as accelerators in resources.`,
    );
  }
}
