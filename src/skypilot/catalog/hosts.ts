/**
 * Which machines SkyPilot attaches accelerators to where a catalog prices them apart, as that of Google Cloud does. Source: SkyPilot 0.13 and
 * 1.0.0-dev, `sky/catalog/gcp_catalog.py`.
 */
import type { Machine } from './machines.ts';

/** Accelerator → number of them → the machines that have them. All in lower case. */
const BUILT_IN: Readonly<Record<string, Readonly<Record<number, readonly string[]>>>> = {
  a100: {
    ...{ 1: ['a2-highgpu-1g'], 2: ['a2-highgpu-2g'], 4: ['a2-highgpu-4g'], 8: ['a2-highgpu-8g'] },
    16: ['a2-megagpu-16g'],
  },
  'a100-80gb': {
    ...{ 1: ['a2-ultragpu-1g'], 2: ['a2-ultragpu-2g'], 4: ['a2-ultragpu-4g'], 8: ['a2-ultragpu-8g'] },
  },
  l4: {
    1: ['g2-standard-4', 'g2-standard-8', 'g2-standard-12', 'g2-standard-16', 'g2-standard-32'],
    ...{ 2: ['g2-standard-24'], 4: ['g2-standard-48'], 8: ['g2-standard-96'] },
  },
  h100: { 1: ['a3-highgpu-1g'], 2: ['a3-highgpu-2g'], 4: ['a3-highgpu-4g'], 8: ['a3-highgpu-8g'] },
  'h100-mega': { 8: ['a3-megagpu-8g'] },
  h200: { 8: ['a3-ultragpu-8g'] },
  b200: { 8: ['a4-highgpu-8g'] },
  rtxpro6000: {
    1: ['g4-standard-48'],
    2: ['g4-standard-96'],
    4: ['g4-standard-192'],
    8: ['g4-standard-384'],
  },
};
/** Accelerators that any machine of the first generation can have. */
const ATTACHED = new Set(['k80', 'v100', 't4', 'p4', 'p100']);
/** Families whose machines have accelerators. */
const WITH_ACCELERATORS = /^[ag]\d/;
/** A machine that costs nothing beside its TPU, and is in no catalog. */
const TPU_MACHINE = 'tpu-vm';

/** Accelerators of a machine. */
export interface BuiltIn {
  readonly name: string;
  readonly count: number;
}

/** What a machine has. `null` = nothing; `undefined` = nobody knows. */
export function builtInOf(instanceType: string): BuiltIn | null | undefined {
  for (const [name, counts] of Object.entries(BUILT_IN)) {
    for (const [count, types] of Object.entries(counts)) {
      if (types.includes(instanceType)) {
        return { name, count: Number(count) };
      }
    }
  }
  return WITH_ACCELERATORS.test(instanceType) ? undefined : null;
}

/** Whether a machine costs nothing beside its TPU. */
export function isTpuMachine(instanceType: string): boolean {
  return instanceType === TPU_MACHINE;
}

/** Whether a machine may be what SkyPilot attaches these accelerators to. What it does with others than these is not known: any may. */
export function mayHost(accelerator: string, count: number): (machine: Machine) => boolean {
  const counts = Object.hasOwn(BUILT_IN, accelerator) ? BUILT_IN[accelerator] : undefined;
  if (counts !== undefined) {
    const types = Object.entries(counts).flatMap(([one, names]) =>
      Math.abs(Number(one) - count) < 0.02 ? names : [],
    );
    return ({ instanceType }) => types.includes(instanceType);
  }
  if (ATTACHED.has(accelerator)) {
    return ({ instanceType }) => instanceType.startsWith('n1-');
  }
  return ({ instanceType }) => instanceType !== '';
}
