/** Reads the accelerators of resources. Source: SkyPilot 0.13, `resources.accelerators` of its tasks. */
import { YamlDocument } from '../../yaml/document.ts';
import { isMapping } from '../../yaml/tree.ts';
import { PolicyRejected } from '../admin-policy.ts';
import type { Resources } from './resources.ts';

/** A kind of accelerator and its number. */
export interface Accelerator {
  /** As written: SkyPilot completes names and their case later, see `canonicalAccelerator`. For a memory, its text. */
  readonly name: string;
  /** For each node. May be a fraction. */
  readonly count: number;
  /** Set if the accelerator is named by its memory: SkyPilot takes any that has it. */
  readonly memory?: AcceleratorMemory;
}

export interface AcceleratorMemory {
  readonly gigabytes: number;
  readonly orMore: boolean;
  readonly manufacturer: string | null;
}

const MEMORY = /^([0-9]{1,9})([gmt])b(\+?)$/i;
const GIGABYTES = { m: 1 / 1024, g: 1, t: 1024 } as const;
const NUMBER = /^\s*(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i;

/**
 * The accelerators of resources, from `accelerators` or its alias `gpus`, in any form: `A100`, `A100:8`, `{A100: 8}`,
 * `[A100:8, H100:4]`, `80GB+`, `nvidia:80GB:2`. Several are alternatives. Empty if there are none.
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
 * The accelerator of `known` that SkyPilot takes for a name: it ignores case, and completes a name that is part of
 * only one other. Names that start with `tpu-` are in lower case. `undefined` = none or several.
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
    return acceleratorsOf({ accelerators: YamlDocument.parse(trimmed).value });
  }
  const [first = '', second, third, ...further] = trimmed.split(':');
  // SkyPilot takes every name for a completion of an empty one.
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
  const gigabytes = Number(amount) * GIGABYTES[unit.toLowerCase() as keyof typeof GIGABYTES];
  return { name: text, count: countOf(count), memory: { gigabytes, orMore: plus === '+', manufacturer } };
}

function countOf(text: string): number {
  const count = NUMBER.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(count)) {
    throw unreadable();
  }
  return count;
}

function unreadable(): PolicyRejected {
  return new PolicyRejected(
    'resources.accelerators: expected a name with a number such as A100:8, or a list or mapping of these.',
  );
}
