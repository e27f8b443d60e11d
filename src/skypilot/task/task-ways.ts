/** All ways in which a task may run, in one form, for rules. Refuses what it cannot read. */
import { isMapping, type Mapping } from '../../base/yaml/tree.ts';
import { PolicyRejected } from '../admin-policy.ts';
import { taskConfigsOf } from '../config/task-configs.ts';
import type { UserRequest } from '../request/user-request.ts';
import {
  type Accelerator,
  acceleratorsOf,
  GIGABYTES,
  isPlainAccelerator,
  readingsOfAccelerator,
} from './accelerators.ts';
import { AUTOSTOP_OFF, autostopMinutesOf, autostopMinutesOfOptions } from './autostop.ts';
import { imagesOf } from './images.ts';
import { infraOf } from './infra.ts';
import { type Resources, resourcesOf } from './resources.ts';

/** Source: SkyPilot 0.13, `parse_memory_resource`. */
const NUMBER = /^\s*(\d{1,12}(?:\.\d{1,6})?)\s*(?:([kmgtp])[bi])?\s*\+?\s*$/i;
const MULTIPLE = /^\s*\d+(?:\.\d+)?x\+?\s*$/i;

/** @throws PolicyRejected for more than `most` ways, and for unreadable values */
export function waysOfTask({ task, skypilotConfig, requestOptions }: UserRequest, most: number) {
  const said = autostopMinutesOfOptions(requestOptions);
  const resources: ReturnType<typeof wayOf>[] = [];
  for (const one of resourcesOf(task)) {
    const accelerators = acceleratorsOf(one);
    for (const accelerator of accelerators.length === 0 ? [undefined] : accelerators) {
      if (resources.length >= most) {
        throw new PolicyRejected(`resources: expected at most ${most} alternatives.`);
      }
      resources.push(wayOf(one, accelerator, imagesOf(one, task), said));
    }
  }
  const { name, num_nodes: nodes, envs } = task;
  if (nodes !== undefined && nodes !== null && !isWhole(nodes)) {
    throw unreadable('num_nodes', 'a whole number');
  }
  if (envs !== undefined && envs !== null && !isMapping(envs)) {
    throw unreadable('envs', 'a mapping');
  }
  const workspace = skypilotConfig.getNested(['active_workspace']);
  return {
    taskName: typeof name === 'string' ? name : undefined,
    numNodes: BigInt(isWhole(nodes) ? nodes : 1),
    envs: isMapping(envs) ? Object.keys(envs) : [],
    resources,
    workspace: typeof workspace === 'string' ? workspace : 'default',
    config: skypilotConfig.toDict(),
    overrides: taskConfigsOf(task).map(({ config }) => config),
  };
}

function wayOf(
  one: Resources,
  accelerator: Accelerator | undefined,
  images: readonly string[],
  saidAutostop: number | undefined,
) {
  const { cloud, region, zone } = infraOf(one);
  const { instance_type: type, use_spot: spot, cpus, memory, disk_size: disk, labels } = one;
  if (spot !== undefined && spot !== null && typeof spot !== 'boolean') {
    throw unreadable('resources.use_spot', 'true or false');
  }
  if (type !== undefined && type !== null && typeof type !== 'string') {
    throw unreadable('resources.instance_type', 'a text');
  }
  if (labels !== undefined && labels !== null && !isMapping(labels)) {
    throw unreadable('resources.labels', 'a mapping');
  }
  const autostop = autostopMinutesOf(one.autostop) ?? saidAutostop;
  return {
    cloud: cloud ?? undefined,
    region: region ?? undefined,
    zone: zone ?? undefined,
    instanceType: type ?? undefined,
    accelerators: new Map(accelerator === undefined ? [] : [[nameOf(accelerator), accelerator.count]]),
    mayBe: (wanted: string) => accelerator !== undefined && mayBe(accelerator, wanted),
    cpus: amountOf('cpus', cpus),
    memory: amountOf('memory', memory),
    useSpot: spot === true,
    images,
    ports: portsOf(one.ports),
    diskSize: amountOf('disk_size', disk),
    autostop: autostop === undefined ? undefined : autostop < 0 ? AUTOSTOP_OFF : autostop,
    labels: isMapping(labels) ? labels : {},
    attributes: one satisfies Mapping,
  };
}

/** SkyPilot ignores case. */
function nameOf({ name, memory }: Accelerator): string {
  if (memory === undefined && !isPlainAccelerator(name)) {
    throw unreadable('resources.accelerators', 'a plain name such as H100');
  }
  return name.toLowerCase().startsWith('tpu-') ? name.toLowerCase() : name.toUpperCase();
}

function mayBe({ name, memory }: Accelerator, wanted: string): boolean {
  return memory !== undefined || readingsOfAccelerator(name, [wanted]).includes(wanted.trim().toLowerCase());
}

/** Numbers, `4+`, `16GB`, but no unit for CPUs; memory may be a multiple of the CPUs, which is not a number. */
function amountOf(name: string, value: unknown): number | undefined {
  if (value === undefined || value === null || (name === 'memory' && isText(value) && MULTIPLE.test(value))) {
    return undefined;
  }
  const text = typeof value === 'number' || typeof value === 'bigint' ? String(value) : value;
  const [, number, unit] = (isText(text) && NUMBER.exec(text)) || [];
  if (number === undefined || (name === 'cpus' && unit !== undefined)) {
    throw unreadable(`resources.${name}`, 'a number such as 8 or 8+');
  }
  return Number(number) * (GIGABYTES[(unit ?? 'g').toLowerCase()] ?? 1);
}

function portsOf(ports: unknown): readonly string[] {
  if (ports === undefined || ports === null) {
    return [];
  }
  const all: unknown[] = Array.isArray(ports) ? ports : [ports];
  return all.map((port) => {
    if (typeof port !== 'string' && typeof port !== 'number' && typeof port !== 'bigint') {
      throw unreadable('resources.ports', 'ports such as 8080 or 8000-8010');
    }
    return String(port).trim();
  });
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isWhole(value: unknown): value is number | bigint {
  return typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value));
}

function unreadable(field: string, expected: string): PolicyRejected {
  return new PolicyRejected(`${field}: expected ${expected}.`);
}
