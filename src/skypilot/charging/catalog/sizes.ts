/** Reads `cpus` and `memory` of resources, as SkyPilot compares them with its catalogs. Source: SkyPilot 0.13, `_filter_with_cpus`, `_filter_with_mem`. */
import type { Machine } from './machines.ts';

/** Whether a machine has this size. */
export type Fits = (machine: Pick<Machine, 'vcpus' | 'memory'>) => boolean;

const NUMBER = String.raw`(\d{1,9}(?:\.\d{1,20})?)`;
const CPUS = new RegExp(`^${NUMBER}(\\+?)$`);
const MEMORY = new RegExp(`^${NUMBER}((?:[kmgtp][bi])?)(x?)(\\+?)$`, 'i');
/** Of a GB: SkyPilot takes all units for binary ones. */
const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  k: 2 ** -20,
  m: 2 ** -10,
  g: 1,
  t: 2 ** 10,
  p: 2 ** 20,
};

/** `8`, `8+`. `undefined` = it cannot be read. */
export function readCpus(text: string): Fits | undefined {
  const [, number, plus] = CPUS.exec(text) ?? [];
  if (number === undefined) {
    return undefined;
  }
  const cpus = Number(number);
  return ({ vcpus }) => vcpus !== undefined && (plus === '+' ? vcpus >= cpus : vcpus === cpus);
}

/** In GB: `32`, `32+`, `32GB+`; for each vCPU: `4x`. `undefined` = it cannot be read. */
export function readMemory(text: string): Fits | undefined {
  const [, number, unit = '', perCpu, plus] = MEMORY.exec(text) ?? [];
  const factor = UNITS[unit.slice(0, 1).toLowerCase()];
  if (number === undefined || factor === undefined) {
    return undefined;
  }
  const gigabytes = Number(number) * factor;
  return ({ vcpus, memory }) => {
    // SkyPilot knows no machine's size where its catalog has none.
    if (memory === undefined) {
      return false;
    }
    if (perCpu !== '') {
      return vcpus !== undefined && memory >= vcpus * gigabytes;
    }
    return plus === '+' ? memory >= gigabytes : memory === gigabytes;
  };
}
