/** The machines of a catalog: the possible results of a launch, and their prices by region. */
import { GIGABYTES } from '../../task/accelerators.ts';

/** A line of a catalog. Texts are in lower case. */
interface CatalogLine {
  /** Empty = an accelerator whose machine is priced separately, as on Google Cloud. */
  readonly instanceType: string;
  /** Empty = none. */
  readonly accelerator: string;
  readonly count: number;
  readonly vcpus: number | undefined;
  /** In GiB. */
  readonly memory: number | undefined;
  readonly region: string;
  readonly price: Price | undefined;
  readonly spot: Price | undefined;
}

/** The most expensive and the cheapest of several lines. */
export interface Prices {
  price: Price | undefined;
  spot: Price | undefined;
  cheapest: Price | undefined;
  cheapestSpot: Price | undefined;
}

/** The offers with one name and size. */
export interface Machine
  extends Pick<CatalogLine, 'instanceType' | 'accelerator' | 'count' | 'vcpus' | 'memory'> {
  readonly regions: ReadonlyMap<string, Prices>;
  readonly everywhere: Prices;
}

export class Machines {
  readonly #all = new Map<string, Machine & { readonly regions: Map<string, Prices> }>();

  add(line: CatalogLine): void {
    const { instanceType, accelerator, count, vcpus, memory } = line;
    const key = JSON.stringify([instanceType, accelerator, count, vcpus, memory]);
    const size = { instanceType, accelerator, count, vcpus, memory };
    const machine = this.#all.get(key) ?? { ...size, regions: new Map(), everywhere: none() };
    this.#all.set(key, machine);
    const region = machine.regions.get(line.region) ?? none();
    machine.regions.set(line.region, region);
    take(region, line);
    take(machine.everywhere, line);
  }

  list(): readonly Machine[] {
    return [...this.#all.values()];
  }
}

function none(): Prices {
  return { price: undefined, spot: undefined, cheapest: undefined, cheapestSpot: undefined };
}

function take(prices: Prices, { price, spot }: CatalogLine): void {
  prices.price = moreExpensive(prices.price, price);
  prices.spot = moreExpensive(prices.spot, spot);
  prices.cheapest = cheaper(prices.cheapest, price);
  prices.cheapestSpot = cheaper(prices.cheapestSpot, spot);
}

function cheaper(one: Price | undefined, other: Price | undefined): Price | undefined {
  return one === undefined || (other !== undefined && other < one) ? other : one;
}

/** Millionths of a unit for each hour. */
export type Price = bigint;

/** Maximum price of a machine, in units for each hour. */
export const MAX_PRICE = 1_000_000n;

const MILLION = 1_000_000n;
const NUMBER = /^(\d{0,30})(?:\.(\d{0,60}))?(?:e([+-]?\d{1,3}))?$/i;
const MAX_EXPONENT = 60;

/** `3.06`, `1e-3`: exact; rounded up to millionths. `undefined` = not a number from 0 to `MAX_PRICE`. */
export function parsePrice(text: string): Price | undefined {
  const [, whole, fraction = '', written = '0'] = NUMBER.exec(text) ?? [];
  const exponent = Number(written);
  if (whole === undefined || whole + fraction === '' || Math.abs(exponent) > MAX_EXPONENT) {
    return undefined;
  }
  const shift = exponent - fraction.length + 6;
  const digits = BigInt(whole + fraction);
  const divisor = 10n ** BigInt(Math.max(0, -shift));
  const price = (digits * 10n ** BigInt(Math.max(0, shift)) + divisor - 1n) / divisor;
  return price > MAX_PRICE * MILLION ? undefined : price;
}

/** The higher of two prices; a missing one is ignored. */
export function moreExpensive(one: Price | undefined, other: Price | undefined): Price | undefined {
  return one === undefined || (other !== undefined && other > one) ? other : one;
}

/** Whether a machine has this size. */
export type Fits = (machine: Pick<Machine, 'vcpus' | 'memory'>) => boolean;

const SIZE = String.raw`(\d{1,9}(?:\.\d{1,20})?)`;
const CPUS = new RegExp(`^${SIZE}(\\+?)$`);
const MEMORY = new RegExp(`^${SIZE}((?:[kmgtp][bi])?)(x?)(\\+?)$`, 'i');
/** `8`, `8+`. `undefined` = unreadable. */
export function readCpus(text: string): Fits | undefined {
  const [, number, plus] = CPUS.exec(text) ?? [];
  if (number === undefined) {
    return undefined;
  }
  const cpus = Number(number);
  return ({ vcpus }) => vcpus !== undefined && (plus === '+' ? vcpus >= cpus : vcpus === cpus);
}

/** In GB: `32`, `32+`, `32GB+`; for each vCPU: `4x`. `undefined` = unreadable. */
export function readMemory(text: string): Fits | undefined {
  const [, number, unit = '', perCpu, plus] = MEMORY.exec(text) ?? [];
  const factor = GIGABYTES[(unit[0] ?? 'g').toLowerCase()];
  if (number === undefined || factor === undefined) {
    return undefined;
  }
  const gigabytes = Number(number) * factor;
  return ({ vcpus, memory }) => {
    // SkyPilot excludes machines whose size is missing in its catalog.
    if (memory === undefined) {
      return false;
    }
    if (perCpu !== '') {
      return vcpus !== undefined && memory >= vcpus * gigabytes;
    }
    return plus === '+' ? memory >= gigabytes : memory === gigabytes;
  };
}
