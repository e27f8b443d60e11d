/** Costs of hardware: by the operator's rates, and by the prices of catalogs. */

import { parseMillionths } from '../../filter/claim.ts';
import { acceleratorsIn, readingsOfAccelerator } from '../task/accelerators.ts';
import { mayGiveAccelerators } from '../task/cloud-features.ts';
import type { Catalog, RequestedHardware } from './catalog/catalog.ts';
import { moreExpensive, parsePrice, readCpus, readMemory } from './catalog/machines.ts';
import type { Hardware } from './contract.ts';

type Counted = NonNullable<Hardware['accelerators']>;

/**
 * Rates and catalogs together. A rate of an instance type or accelerator takes precedence over a catalog
 * price, which takes precedence over default rates (`aws/*`, `*`). Otherwise the cost is unknown. Without
 * catalogs, only rates count.
 */
export class HardwareCosts {
  readonly #rates: HardwareRates;
  readonly #catalogs: ReadonlyMap<string, Catalog>;

  /** `catalogs`: by cloud. */
  constructor(rates: HardwareRates, catalogs: ReadonlyMap<string, Catalog>) {
    this.#rates = rates;
    this.#catalogs = catalogs;
  }

  /** As `HardwareRates.costOf`: millionths of a unit for each hour, of all nodes, of the most expensive choice. */
  costOf(hardware: Hardware): bigint | CostMistake {
    const cost = this.#costOf(hardware);
    if (!hardware.isSpot || hardware.requirements?.mayFallBack !== true) {
      return cost;
    }
    const other = this.#costOf({ ...hardware, isSpot: false });
    return typeof cost === 'bigint' && !(typeof other === 'bigint' && other > cost) ? cost : other;
  }

  #costOf(hardware: Hardware): bigint | CostMistake {
    if (this.#catalogs.size === 0) {
      return this.#rates.costOf(hardware);
    }
    const asked = askedOf(hardware);
    if ('mistake' in asked) {
      return asked;
    }
    const { cloud, requirements } = hardware;
    const clouds = cloud === null ? (requirements?.clouds ?? [...this.#catalogs.keys(), null]) : [cloud];
    let most: bigint | undefined;
    for (const one of clouds) {
      const cost = this.#inCloud(one, hardware, asked);
      if (typeof cost === 'bigint') {
        most = moreExpensive(most, cost);
      } else if (cloud !== null || one === null || !this.#catalogs.has(one)) {
        // In other clouds with a catalog, SkyPilot cannot choose what the catalog lacks.
        return cost;
      }
    }
    return most === undefined
      ? { mistake: `no catalog has a price for ${shown(hardware)}` }
      : most * BigInt(hardware.nodes);
  }

  /** Of one node. `cloud`: `null` = a cloud without a catalog. */
  #inCloud(cloud: string | null, hardware: Hardware, asked: RequestedHardware): bigint | CostMistake {
    const { accelerators, instanceType, isSpot, shownType } = hardware;
    const counted = accelerators ?? acceleratorsIn(instanceType);
    const named =
      counted !== null && counted.count > 0 ? { ...counted, count: countIn(cloud, counted.count) } : null;
    const catalog = cloud === null ? undefined : this.#catalogs.get(cloud);
    const cost = this.#priced(cloud, catalog, asked, named, shownType !== undefined);
    if (cost !== undefined) {
      return cost;
    }
    const isUnknown = counted === null && (instanceType !== null || mayGiveAccelerators(cloud));
    const byDefault = this.#rates.costByDefault(cloud, named?.count ?? 0, isSpot);
    if (byDefault !== undefined && !isUnknown) {
      return byDefault;
    }
    const isByDefault = byDefault !== undefined && cloud !== null && catalog === undefined;
    return {
      mistake: isByDefault
        ? unknownAccelerators(instanceType)
        : reasonOf(cloud, catalog !== undefined, hardware),
    };
  }

  #priced(
    cloud: string | null,
    catalog: Catalog | undefined,
    asked: RequestedHardware,
    named: Counted | null,
    isCluster: boolean,
  ): bigint | undefined {
    const { instanceType, isSpot } = asked;
    const rateOf = (accelerator: RequestedHardware['accelerator']) =>
      accelerator === null
        ? undefined
        : this.#rates.costByName(cloud, accelerator.name, accelerator.count, isSpot);
    const listed = (type: string, accelerator: RequestedHardware['accelerator']) =>
      this.#rates.costByName(cloud, type, 1, isSpot) ?? rateOf(accelerator);
    const isListedType = instanceType !== null && (catalog?.hasType(instanceType) ?? false);
    if (catalog === undefined || (instanceType !== null && !isListedType)) {
      const own = instanceType === null ? undefined : this.#rates.costByName(cloud, instanceType, 1, isSpot);
      if (own !== undefined || (catalog !== undefined && !isCluster)) {
        return own;
      }
    }
    const prices = this.#readings(named, catalog).map((accelerator) => {
      const one = { ...asked, accelerator };
      const isNothing = isCluster && instanceType === null && accelerator === null;
      const price = isNothing ? undefined : catalog?.mostExpensive(one, listed);
      return (
        price ??
        rateOf(accelerator) ??
        (isCluster && catalog && !isNothing ? anywhere(catalog, one, listed) : undefined)
      );
    });
    return prices.reduce(moreExpensive, undefined);
  }

  /** The accelerators that a name may mean to SkyPilot. */
  #readings(named: Counted | null, catalog: Catalog | undefined): (Counted | null)[] {
    return named === null
      ? [null]
      : readingsOfAccelerator(named.name, [...this.#rates.names, ...(catalog?.accelerators ?? [])]).map(
          (name) => ({
            name,
            count: named.count,
          }),
        );
  }
}

/** A running cluster has a cost: without a price for its region, spot or type, a wider match is used. */
function anywhere(
  catalog: Catalog,
  asked: RequestedHardware,
  listed: Parameters<Catalog['mostExpensive']>[1],
): bigint | undefined {
  const open = { ...asked, region: null };
  const untyped = { ...open, instanceType: null };
  return [open, { ...open, isSpot: false }, ...(asked.accelerator === null ? [] : [untyped])].reduce<
    bigint | undefined
  >((found, one) => found ?? catalog.mostExpensive(one, listed), undefined);
}

function askedOf({
  region,
  instanceType,
  isSpot,
  requirements,
  shownType,
}: Hardware): RequestedHardware | CostMistake {
  const { cpus = null, memory = null, maxPrice = null } = requirements ?? {};
  const fitsCpus = cpus === null ? undefined : readCpus(cpus.trim());
  const fitsMemory = memory === null ? undefined : readMemory(memory.trim());
  if (cpus !== null && fitsCpus === undefined) {
    return { mistake: 'expected cpus such as 8 or 8+' };
  }
  if (memory !== null && fitsMemory === undefined) {
    return { mistake: 'expected memory such as 32, 32+ or 4x' };
  }
  return {
    instanceType: (shownType ?? instanceType)?.toLowerCase() ?? null,
    accelerator: null,
    region: region?.toLowerCase() ?? null,
    isSpot,
    cpus: fitsCpus,
    memory: fitsMemory,
    max: maxPrice === null ? undefined : parsePrice(String(maxPrice)),
    hasTpuHost: requirements?.hasTpuHost ?? false,
  };
}

function reasonOf(cloud: string | null, hasCatalog: boolean, hardware: Hardware): string {
  if (cloud === null) {
    return 'name a cloud in infra, because SkyPilot may choose one that has no prices here';
  }
  return hasCatalog
    ? `the catalog of ${cloud.slice(0, 100)} has no price for ${shown(hardware)}`
    : `there is neither a catalog nor a rate for ${cloud.slice(0, 100)}`;
}

function shown({ accelerators, instanceType, shownType, region, isSpot }: Hardware): string {
  const type = shownType ?? instanceType;
  const what = [
    ...(type === null ? [] : [type]),
    ...(accelerators === null || accelerators.count === 0
      ? []
      : [`${accelerators.name}:${accelerators.count}`]),
  ].join(' with ');
  const machine = what === '' ? 'a machine that fits' : what;
  return `${machine}${isSpot ? ' as spot instances' : ''}${region === null ? '' : ` in ${region}`}`.slice(
    0,
    300,
  );
}

/** `null` = SkyPilot chooses it. */
function unknownAccelerators(instanceType: string | null): string {
  return instanceType === null
    ? 'name the accelerators or the instance type, because a machine that SkyPilot chooses there may have some'
    : `name the accelerators of ${instanceType.slice(0, 100)}, which may have some`;
}

/** Clouds without machine types of their own. */
const ROUNDED_UP = new Set(['kubernetes', 'ssh', 'slurm']);

/** SkyPilot rounds parts of an accelerator up where they are no machines of a catalog. `null` = perhaps there. */
function countIn(cloud: string | null, count: number): number {
  return cloud === null || ROUNDED_UP.has(cloud) ? Math.ceil(count) : count;
}

const MILLION = 1_000_000n;

/** Why a cost is unknown: a sentence without its end. */
export interface CostMistake {
  readonly mistake: string;
}

/** Rates of accelerators and of instance types, by cloud. Names are case-insensitive. */
export class HardwareRates {
  /** Name in lower case → millionths of a unit for each accelerator and hour. */
  readonly #rates: ReadonlyMap<string, bigint>;
  /** The clouds with their own rates; `null` = the others. */
  readonly #clouds: readonly (string | null)[];
  readonly #names: readonly string[];
  readonly #spotFactor: bigint;

  /** `rates`: units for each accelerator, or node of an instance type, and hour. */
  constructor(rates: Readonly<Record<string, number>>, spotFactor = 1) {
    this.#rates = new Map(Object.entries(rates).map(([name, rate]) => [spelled(name), millionths(rate)]));
    const clouds = [...this.#rates.keys()].flatMap((name) =>
      name.includes('/') ? [name.slice(0, name.indexOf('/'))] : [],
    );
    this.#clouds = [...new Set(clouds), null];
    this.#names = [...this.#rates.keys()].map((name) => name.slice(name.indexOf('/') + 1));
    this.#spotFactor = millionths(spotFactor);
  }

  /**
   * In millionths of a unit for each hour, of all nodes; rounded up. If the cloud is unknown, the most expensive
   * counts. An instance type with an unknown number of accelerators is a mistake.
   */
  costOf({ nodes, cloud, accelerators, instanceType, isSpot, requirements }: Hardware): bigint | CostMistake {
    const clouds = cloud === null ? this.#clouds : [cloud];
    if (accelerators === null && instanceType === null) {
      return mayGiveAccelerators(cloud, requirements?.clouds) ? { mistake: unknownAccelerators(null) } : 0n;
    }
    const counted = accelerators ?? acceleratorsIn(instanceType);
    if (counted === null) {
      const all = clouds.map((one) => this.costByName(one, instanceType ?? '', nodes, isSpot));
      return all.reduce(moreExpensive, undefined) ?? { mistake: unknownAccelerators(instanceType) };
    }
    const names = readingsOfAccelerator(counted.name, this.#names);
    const costs = clouds.flatMap((one) =>
      names.map((name) => {
        const rate = this.#ownRateOf(one, name) ?? this.#defaultRateOf(one) ?? 0n;
        return this.#multiplied(rate, countIn(one, counted.count), isSpot, nodes);
      }),
    );
    return costs.reduce(moreExpensive, undefined) ?? 0n;
  }

  /** The accelerators and instance types that have a rate. */
  get names(): readonly string[] {
    return this.#names;
  }

  /** Cost of `count` of a name in a cloud by the rate of this name, as `costOf`. `undefined` = no rate. */
  costByName(cloud: string | null, name: string, count: number, isSpot: boolean): bigint | undefined {
    const rate = name === '*' ? undefined : this.#ownRateOf(cloud, name);
    return rate === undefined ? undefined : this.#multiplied(rate, count, isSpot);
  }

  /** The cost by the default rate: `aws/*`, `*`. */
  costByDefault(cloud: string | null, count: number, isSpot: boolean): bigint | undefined {
    const rate = this.#defaultRateOf(cloud);
    return rate === undefined ? undefined : this.#multiplied(rate, count, isSpot);
  }

  #multiplied(rate: bigint, count: number, isSpot: boolean, nodes = 1): bigint {
    const factor = isSpot ? this.#spotFactor : MILLION;
    const amount = rate * BigInt(Math.ceil(count * 1e6)) * BigInt(nodes) * factor;
    return (amount + MILLION * MILLION - 1n) / (MILLION * MILLION);
  }

  #ownRateOf(cloud: string | null, name: string): bigint | undefined {
    return this.#inCloud(cloud, name) ?? this.#rates.get(spelled(name));
  }

  #defaultRateOf(cloud: string | null): bigint | undefined {
    return this.#inCloud(cloud, '*') ?? this.#rates.get('*');
  }

  #inCloud(cloud: string | null, name: string): bigint | undefined {
    return cloud === null ? undefined : this.#rates.get(spelled(`${cloud}/${name}`));
  }
}

function spelled(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replace(/^k8s\//, 'kubernetes/')
    .replace(/^digitalocean\//, 'do/');
}

function millionths(number: number): bigint {
  return parseMillionths(String(number)) ?? 0n;
}
