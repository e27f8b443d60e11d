/** The machines of a catalog: what a launch can become, and what that costs by region. */
import { dearer, type Price } from './price.ts';

/** A line of a catalog. Texts are in lower case. */
export interface CatalogLine {
  /** Empty = an accelerator whose machine is priced apart, as on Google Cloud. */
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

/** The dearest and the cheapest of several lines. */
export interface Prices {
  price: Price | undefined;
  spot: Price | undefined;
  cheapest: Price | undefined;
  cheapestSpot: Price | undefined;
}

/** What is offered under one name, with one size. */
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
    let machine = this.#all.get(key);
    if (machine === undefined) {
      machine = { instanceType, accelerator, count, vcpus, memory, regions: new Map(), everywhere: none() };
      this.#all.set(key, machine);
    }
    let region = machine.regions.get(line.region);
    if (region === undefined) {
      region = none();
      machine.regions.set(line.region, region);
    }
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
  prices.price = dearer(prices.price, price);
  prices.spot = dearer(prices.spot, spot);
  prices.cheapest = cheaper(prices.cheapest, price);
  prices.cheapestSpot = cheaper(prices.cheapestSpot, spot);
}

function cheaper(one: Price | undefined, other: Price | undefined): Price | undefined {
  return one === undefined || (other !== undefined && other < one) ? other : one;
}
