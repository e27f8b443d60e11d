/**
 * The price of a launch by the catalog of one cloud: that of the most expensive machine that SkyPilot may choose,
 * since the choice is SkyPilot's. Source: SkyPilot 0.13 and 1.0.0-dev, `sky/catalog/common.py` and
 * `gcp_catalog.py`.
 */
import { addTo } from '../../../ledger/add-to.ts';
import { COMPARES_ALL_REGIONS } from '../../task/cloud-features.ts';
import { type Fits, type Machine, moreExpensive, type Price, type Prices } from './machines.ts';

/** The requested machine. Names are in lower case. */
export interface RequestedHardware {
  /** `null` = SkyPilot chooses. */
  readonly instanceType: string | null;
  /** Of each node; `null` = determined by the machine alone. */
  readonly accelerator: { readonly name: string; readonly count: number } | null;
  /** `null` = any. */
  readonly region: string | null;
  readonly isSpot: boolean;
  readonly cpus: Fits | undefined;
  readonly memory: Fits | undefined;
  /** SkyPilot skips machines that cost more everywhere. */
  readonly max: Price | undefined;
  /** Whether a TPU has a machine beside it. */
  readonly hasTpuHost: boolean;
}

/** The operator's price for a machine, including its parts; `undefined` = the catalog applies. */
type ListedPrice = (instanceType: string, accelerator: RequestedHardware['accelerator']) => Price | undefined;

/** Where SkyPilot ignores the size of machines with accelerators. */
const IGNORES_MEMORY = new Set('primeintellect runpod shadeform verda yotta'.split(' '));
const IGNORES_CPUS = new Set(['shadeform']);
/** SkyPilot treats counts that differ by a hundredth as equal. Wider, since both sides round. */
const SAME_COUNT = 0.011;

export class Catalog {
  readonly #cloud: string;
  readonly #machines: readonly Machine[];
  readonly #byType = new Map<string, Machine[]>();
  readonly #byAccelerator = new Map<string, Machine[]>();
  /** Whether accelerators are priced separately from their machines. */
  readonly #isSplit: boolean;

  constructor(cloud: string, machines: readonly Machine[]) {
    this.#cloud = cloud;
    this.#machines = machines;
    for (const machine of machines) {
      addTo(this.#byType, machine.instanceType, machine);
      addTo(this.#byAccelerator, machine.accelerator, machine);
    }
    this.#isSplit = this.#byType.has('');
  }

  /** In lower case. */
  get accelerators(): readonly string[] {
    return [...this.#byAccelerator.keys()].filter((name) => name !== '');
  }

  hasType(instanceType: string): boolean {
    return this.#byType.has(instanceType) || (this.#isSplit && instanceType === TPU_MACHINE);
  }

  /** For one node and hour. `undefined` = the catalog has no price for it. */
  mostExpensive(asked: RequestedHardware, listed: ListedPrice): Price | undefined {
    return this.#isSplit ? this.#mostExpensiveApart(asked, listed) : this.#mostExpensiveWhole(asked, listed);
  }

  #mostExpensiveWhole(asked: RequestedHardware, listed: ListedPrice): Price | undefined {
    const { instanceType, accelerator } = asked;
    if (instanceType !== null) {
      return mostOf(this.#byType.get(instanceType) ?? [], (machine) => priceOf(machine, asked, listed));
    }
    const offered = accelerator === null ? this.#machines : this.#offers(accelerator);
    const fits = this.#sizeOf(asked);
    return mostOf(offered, (machine) =>
      fits(machine) && this.#isBelow(machine, asked) ? priceOf(machine, asked, listed) : undefined,
    );
  }

  #mostExpensiveApart(asked: RequestedHardware, listed: ListedPrice): Price | undefined {
    const { instanceType, region } = asked;
    const accelerator = asked.accelerator ?? (instanceType === null ? null : builtInOf(instanceType));
    if (accelerator === undefined) {
      return listed(instanceType ?? '', null);
    }
    const isFree = accelerator?.name.startsWith('tpu-') === true && !asked.hasTpuHost;
    const named = instanceType === TPU_MACHINE || (instanceType === null && isFree);
    const fits = this.#sizeOf(asked);
    const hosts = named
      ? []
      : instanceType !== null
        ? (this.#byType.get(instanceType) ?? [])
        : this.#machines
            .filter(
              accelerator === null
                ? ({ instanceType: type }) => type !== ''
                : mayHost(accelerator.name, accelerator.count),
            )
            .filter((machine) => fits(machine) && (accelerator !== null || this.#isBelow(machine, asked)));
    if (accelerator === null) {
      return mostOf(hosts, (machine) => priceOf(machine, asked, listed));
    }
    // SkyPilot finds none below `max_hourly_cost`, and takes them whatever they cost.
    const apart = this.#offers(accelerator).filter((one) => one.instanceType === '');
    const regions =
      region === null ? [...new Set(apart.flatMap((one) => [...one.regions.keys()]))] : [region];
    const most = (where: string) => mostOf(apart, (one) => acceleratorPrice(one.regions.get(where), asked));
    if (named) {
      return listed(instanceType ?? '', accelerator) ?? regions.map(most).reduce(moreExpensive, undefined);
    }
    const prices = new Map(regions.map((where) => [where, most(where)]));
    return mostOf(hosts, (host) => {
      return (
        listed(host.instanceType, accelerator) ??
        [...prices]
          .map(([where, price]) => sum(columnOf(host.regions.get(where), asked), price))
          .reduce(moreExpensive, undefined)
      );
    });
  }

  #offers({ name, count }: NonNullable<RequestedHardware['accelerator']>): readonly Machine[] {
    return (this.#byAccelerator.get(name) ?? []).filter((one) => Math.abs(one.count - count) <= SAME_COUNT);
  }

  #sizeOf({ accelerator, cpus, memory }: RequestedHardware): Fits {
    const comparesCpus = accelerator === null || !IGNORES_CPUS.has(this.#cloud);
    const comparesMemory = accelerator === null || !IGNORES_MEMORY.has(this.#cloud);
    return (machine) =>
      (!comparesCpus || cpus?.(machine) !== false) && (!comparesMemory || memory?.(machine) !== false);
  }

  #isBelow(machine: Machine, { max, region, isSpot }: RequestedHardware): boolean {
    if (max === undefined) {
      return true;
    }
    const prices = pricesOf(machine, COMPARES_ALL_REGIONS.has(this.#cloud) ? null : region);
    const price = isSpot ? prices?.cheapestSpot : prices?.cheapest;
    return price !== undefined && price <= max;
  }
}

function mostOf(
  machines: readonly Machine[],
  of: (machine: Machine) => Price | undefined,
): Price | undefined {
  return machines.reduce<Price | undefined>((most, machine) => moreExpensive(most, of(machine)), undefined);
}

function pricesOf({ everywhere, regions }: Machine, region: string | null): Prices | undefined {
  return region === null ? everywhere : regions.get(region);
}

function priceOf(machine: Machine, asked: RequestedHardware, listed: ListedPrice): Price | undefined {
  const prices = pricesOf(machine, asked.region);
  const { accelerator: name, count } = machine;
  const own = prices && listed(machine.instanceType, name === '' ? null : { name, count });
  return own ?? columnOf(prices, asked);
}

function columnOf(prices: Prices | undefined, { isSpot }: RequestedHardware): Price | undefined {
  return isSpot ? prices?.spot : prices?.price;
}

/** SkyPilot uses the on-demand price for accelerators without a spot price. */
function acceleratorPrice(prices: Prices | undefined, asked: RequestedHardware): Price | undefined {
  return columnOf(prices, asked) ?? prices?.price;
}

function sum(one: Price | undefined, other: Price | undefined): Price | undefined {
  return one === undefined || other === undefined ? undefined : one + other;
}

// The machines to which SkyPilot attaches accelerators that a catalog prices separately, as Google Cloud's
// does. Source: SkyPilot 0.13 and 1.0.0-dev, `sky/catalog/gcp_catalog.py`.

/** Accelerator → count → the machines that have them. All in lower case. */
const BUILT_IN: Readonly<Record<string, Readonly<Record<number, readonly string[]>>>> = {
  a100: {
    1: ['a2-highgpu-1g'],
    2: ['a2-highgpu-2g'],
    4: ['a2-highgpu-4g'],
    8: ['a2-highgpu-8g'],
    16: ['a2-megagpu-16g'],
  },
  'a100-80gb': {
    1: ['a2-ultragpu-1g'],
    2: ['a2-ultragpu-2g'],
    4: ['a2-ultragpu-4g'],
    8: ['a2-ultragpu-8g'],
  },
  l4: {
    1: ['g2-standard-4', 'g2-standard-8', 'g2-standard-12', 'g2-standard-16', 'g2-standard-32'],
    2: ['g2-standard-24'],
    4: ['g2-standard-48'],
    8: ['g2-standard-96'],
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
/** A machine that costs nothing in addition to its TPU and is in no catalog. */
const TPU_MACHINE = 'tpu-vm';

/** The accelerators of a machine. `null` = none; `undefined` = unknown. */
function builtInOf(instanceType: string): RequestedHardware['accelerator'] | undefined {
  for (const [name, counts] of Object.entries(BUILT_IN)) {
    for (const [count, types] of Object.entries(counts)) {
      if (types.includes(instanceType)) {
        return { name, count: Number(count) };
      }
    }
  }
  return WITH_ACCELERATORS.test(instanceType) ? undefined : null;
}

/** Whether SkyPilot may attach these accelerators to a machine. Unknown for other accelerators: any may. */
function mayHost(accelerator: string, count: number): (machine: Machine) => boolean {
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
