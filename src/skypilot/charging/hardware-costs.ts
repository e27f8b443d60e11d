/** What hardware costs: by rates that the operator lists, and by the prices of catalogs. */
import { readingsOfAccelerator } from '../task/accelerator-names.ts';
import type { Asked, Catalog } from './catalog/catalog.ts';
import { dearer, parsePrice } from './catalog/price.ts';
import { readCpus, readMemory } from './catalog/sizes.ts';
import type { Hardware } from './contract.ts';
import type { CostMistake, HardwareRates } from './hardware-rates.ts';
import { acceleratorsIn } from './instance-types.ts';

type Counted = NonNullable<Hardware['accelerators']>;

/**
 * Rates and catalogs together. A rate of an instance type or an accelerator counts before the price of a catalog, and a price before the rates of everything
 * else (`aws/*`, `*`). What has neither cannot be told. Without catalogs, rates count alone.
 */
export class HardwareCosts {
  readonly #rates: HardwareRates;
  readonly #catalogs: ReadonlyMap<string, Catalog>;

  /** `catalogs`: by cloud. */
  constructor(rates: HardwareRates, catalogs: ReadonlyMap<string, Catalog>) {
    this.#rates = rates;
    this.#catalogs = catalogs;
  }

  /** As `HardwareRates.costOf`: millionths of a unit for each hour, of all nodes, of the dearest that it may become. */
  costOf(hardware: Hardware): bigint | CostMistake {
    if (this.#catalogs.size === 0) {
      return this.#rates.costOf(hardware);
    }
    const asked = askedOf(hardware);
    if ('mistake' in asked) {
      return asked;
    }
    const { cloud, wishes } = hardware;
    const clouds = cloud === null ? (wishes?.clouds ?? [...this.#catalogs.keys(), null]) : [cloud];
    let most: bigint | undefined;
    for (const one of clouds) {
      const cost = this.#inCloud(one, hardware, asked);
      if (typeof cost === 'bigint') {
        most = dearer(most, cost);
      } else if (cloud !== null || one === null || !this.#catalogs.has(one)) {
        // In the catalogs of other clouds SkyPilot cannot choose what they do not have.
        return cost;
      }
    }
    return most === undefined
      ? { mistake: `no catalog has a price for ${shown(hardware)}` }
      : most * BigInt(hardware.nodes);
  }

  /** Of one node. `cloud`: `null` = one that has no catalog. */
  #inCloud(cloud: string | null, hardware: Hardware, asked: Asked): bigint | CostMistake {
    const { accelerators, instanceType, isSpot, shownType } = hardware;
    const counted = accelerators ?? acceleratorsIn(instanceType);
    const named = counted !== null && counted.count > 0 ? counted : null;
    const catalog = cloud === null ? undefined : this.#catalogs.get(cloud);
    const cost = this.#priced(cloud, catalog, asked, named, shownType !== undefined);
    if (cost !== undefined) {
      return cost;
    }
    const isUnknown = counted === null && instanceType !== null;
    const rate = isUnknown ? undefined : this.#rates.costByDefault(cloud, named?.count ?? 0, isSpot);
    return rate ?? { mistake: reasonOf(cloud, catalog !== undefined, hardware) };
  }

  #priced(
    cloud: string | null,
    catalog: Catalog | undefined,
    asked: Asked,
    named: Counted | null,
    isCluster: boolean,
  ): bigint | undefined {
    const { instanceType, isSpot } = asked;
    const listed = (type: string, accelerator: Asked['accelerator']) =>
      this.#rates.costByName(cloud, type, 1, isSpot) ??
      (accelerator === null
        ? undefined
        : this.#rates.costByName(cloud, accelerator.name, accelerator.count, isSpot));
    const isListedType = instanceType !== null && (catalog?.hasType(instanceType) ?? false);
    if (catalog === undefined || (instanceType !== null && !isListedType)) {
      const own = instanceType === null ? undefined : this.#rates.costByName(cloud, instanceType, 1, isSpot);
      if (own !== undefined || (catalog !== undefined && !isCluster)) {
        return own;
      }
    }
    const prices = this.#readings(named, catalog).map((accelerator) => {
      const rate =
        accelerator === null
          ? undefined
          : this.#rates.costByName(cloud, accelerator.name, accelerator.count, isSpot);
      const one = { ...asked, accelerator };
      const isNothing = isCluster && instanceType === null && accelerator === null;
      const price = isNothing ? undefined : catalog?.dearest(one, listed);
      return (
        price ?? rate ?? (isCluster && catalog && !isNothing ? anywhere(catalog, one, listed) : undefined)
      );
    });
    return prices.reduce(dearer, undefined);
  }

  /** What SkyPilot may take the name of an accelerator for. */
  #readings(named: Counted | null, catalog: Catalog | undefined): (Counted | null)[] {
    return named === null
      ? [null]
      : readingsOfAccelerator(named.name, [...this.#rates.names, ...(catalog?.accelerators ?? [])]).map(
          (name) => ({
            ...{ name, count: named.count },
          }),
        );
  }
}

/** A cluster is up, and costs something: where its place or type has no price, that of the next one known. */
function anywhere(
  catalog: Catalog,
  asked: Asked,
  listed: Parameters<Catalog['dearest']>[1],
): bigint | undefined {
  const open = { ...asked, region: null };
  const untyped = { ...open, instanceType: null };
  return [open, { ...open, mayFallBack: true }, ...(asked.accelerator === null ? [] : [untyped])].reduce<
    bigint | undefined
  >((found, one) => found ?? catalog.dearest(one, listed), undefined);
}

function askedOf({ region, instanceType, isSpot, wishes, shownType }: Hardware): Asked | CostMistake {
  const { cpus = null, memory = null, maxPrice = null } = wishes ?? {};
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
    ...{ region: region?.toLowerCase() ?? null, isSpot },
    mayFallBack: wishes?.mayFallBack ?? false,
    ...{ cpus: fitsCpus, memory: fitsMemory },
    max: maxPrice === null ? undefined : parsePrice(String(maxPrice)),
    hasTpuHost: wishes?.hasTpuHost ?? false,
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
