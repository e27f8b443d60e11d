/** Reads the accelerators of resources. Source: SkyPilot 0.13, `resources.accelerators` of its tasks. */
import { YamlDocument } from '../../base/yaml/document.ts';
import { isMapping } from '../../base/yaml/tree.ts';
import { PolicyRejected } from '../admin-policy.ts';
import type { Hardware } from '../charging/contract.ts';
import type { Resources } from './resources.ts';

/** A kind of accelerator and its number. */
export interface Accelerator {
  /** As written, also for a memory: SkyPilot completes names and case later, see `canonicalAccelerator`. */
  readonly name: string;
  /** For each node. May be a fraction. */
  readonly count: number;
  /** Set if the accelerator is named by its memory: SkyPilot uses any that has it. */
  readonly memory?: AcceleratorMemory;
}

export interface AcceleratorMemory {
  readonly gigabytes: number;
  readonly orMore: boolean;
  readonly manufacturer: string | null;
}

const MEMORY = /^([0-9]{1,9})([gmt])b(\+?)$/i;
/** SkyPilot treats all units as binary. */
export const GIGABYTES: Readonly<Record<string, number>> = {
  k: 2 ** -20,
  m: 2 ** -10,
  g: 1,
  t: 2 ** 10,
  p: 2 ** 20,
};
const NUMBER = /^\s*(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i;

/**
 * The accelerators of resources, from `accelerators` or its alias `gpus`, in any form: `A100`, `A100:8`,
 * `{A100: 8}`, `[A100:8, H100:4]`, `80GB+`, `nvidia:80GB:2`. Several are alternatives. Empty if there are
 * none.
 *
 * @throws PolicyRejected if they have an unknown form
 */
export function acceleratorsOf(resources: Resources): Accelerator[] {
  const accelerators = resources.accelerators ?? resources.gpus;
  if (accelerators === undefined || accelerators === null) {
    return [];
  }
  if (typeof accelerators === 'string') {
    return textOf(accelerators);
  }
  if (Array.isArray(accelerators)) {
    return accelerators.flatMap((item) => acceleratorsOf({ accelerators: item }));
  }
  if (!isMapping(accelerators)) {
    throw unreadable();
  }
  return Object.entries(accelerators).flatMap(([name, count]) => {
    if (count !== null && !['number', 'bigint', 'string'].includes(typeof count)) {
      throw unreadable();
    }
    return textOf(count === null ? name : `${name}:${count}`);
  });
}

/**
 * The accelerator of `known` that SkyPilot uses for a name: it ignores case, and completes a name that is
 * part of only one other. Names that start with `tpu-` are in lower case. `undefined` = none or several.
 */
export function canonicalAccelerator(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase();
  if (wanted.startsWith('tpu-')) {
    return wanted;
  }
  const exact = known.find((candidate) => candidate.toLowerCase() === wanted);
  const parts = known.filter((candidate) => candidate.toLowerCase().includes(wanted));
  return exact ?? (parts.length === 1 ? parts[0] : undefined);
}

function textOf(text: string): Accelerator[] {
  const trimmed = text.trim();
  if (/^none$/i.test(trimmed)) {
    return [];
  }
  if (/^[[{]/.test(trimmed)) {
    // Older versions of SkyPilot parse such a text as YAML again.
    return acceleratorsOf({ accelerators: parsed(trimmed) });
  }
  const [first = '', second, third, ...further] = trimmed.split(':');
  // SkyPilot would complete an empty name to any name.
  if (further.length > 0 || first.trim() === '') {
    throw unreadable();
  }
  if (third !== undefined) {
    return [ofMemory(trimmed, second ?? '', third, first)];
  }
  if (MEMORY.test(first)) {
    return [ofMemory(trimmed, first, second ?? '1', null)];
  }
  if (second !== undefined && MEMORY.test(second)) {
    return [ofMemory(trimmed, second, '1', first)];
  }
  return [{ name: first.trim(), count: countOf(second ?? '1') }];
}

function ofMemory(text: string, memory: string, count: string, manufacturer: string | null): Accelerator {
  const [, amount, unit = 'g', plus] = MEMORY.exec(memory) ?? [];
  if (amount === undefined) {
    throw unreadable();
  }
  const gigabytes = Number(amount) * (GIGABYTES[unit.toLowerCase()] ?? 1);
  return { name: text, count: countOf(count), memory: { gigabytes, orMore: plus === '+', manufacturer } };
}

function countOf(text: string): number {
  const count = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(count)) {
    throw unreadable();
  }
  return count;
}

function parsed(text: string): unknown {
  try {
    return YamlDocument.parse(text).value;
  } catch {
    throw unreadable();
  }
}

function unreadable(): PolicyRejected {
  return new PolicyRejected(
    'resources.accelerators: expected a name with a number such as A100:8, or a list or mapping of these.',
  );
}

/** From SkyPilot's catalogs. SkyPilot never completes one of these names to another. */
const KNOWN =
  `a10 a10g a100 a100-80gb a100-80gb-sxm a30 a40 a6000 b200 gb200 gb300 gh200 h100 h100-mega-80gb h100-nvl h100-sxm h200
h200-sxm inferentia inferentia2 k80 l4 l40 l40s m60 mi300x p100 p4 rtx3090 rtx4090 rtx5090 rtx6000 rtx6000-ada rtxa4000 rtxa5000
rtxa6000 rtxpro6000 t4 t4g trainium trainium2 v100 v100-32gb`.split(/\s+/);
const EXACT: ReadonlySet<string> = new Set(KNOWN);

/** A name without pattern characters except dots. */
const PLAIN = /^[a-z0-9][\w. -]{0,99}$/i;

/** Whether a name stands for itself or for names that contain it, and is not another regular expression. */
export function isPlainAccelerator(name: string): boolean {
  return PLAIN.test(name);
}

/**
 * The names, in lower case, that SkyPilot may use for a plain name: its own first, then those of its catalogs
 * and of `listed` that contain it.
 */
export function readingsOfAccelerator(name: string, listed: readonly string[]): readonly string[] {
  const own = name.trim().toLowerCase();
  if (EXACT.has(own) || own.startsWith('tpu-') || own === '') {
    return [own];
  }
  const contains = containing(own);
  const others = [...KNOWN, ...listed.map((one) => one.toLowerCase())].filter(contains);
  return [...new Set([own, ...others])];
}

/** A dot matches any character. */
function containing(part: string): (name: string) => boolean {
  const [first = '', ...rest] = part.split('.');
  if (rest.length === 0) {
    return (name) => name.includes(part);
  }
  const pattern = new RegExp(
    [first, ...rest].map((text) => text.replaceAll(/[^a-z0-9]/g, String.raw`\$&`)).join('.'),
  );
  return (name) => pattern.test(name);
}

/** SkyPilot names Kubernetes types after their resources: `4CPU--16GB--A100:1`. `null` = no such name. */
export function acceleratorsIn(instanceType: string | null): Hardware['accelerators'] {
  const [, name, count = '0'] =
    /^[\d.]+CPU--[\d.]+GB(?:--([A-Za-z][\w-]{0,100}):(\d{1,6}))?$/i.exec(instanceType ?? '') ?? [];
  if (name !== undefined) {
    return { name, count: Number(count) };
  }
  return /^[\d.]+CPU--[\d.]+GB$/i.test(instanceType ?? '') ? { name: 'none', count: 0 } : null;
}
