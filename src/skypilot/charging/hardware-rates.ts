/** What hardware costs, by rates that an operator lists: `A100:2, aws/A100:3, aws/*:2, *:1`. */
import { parseMillionths } from '../../filter/amount.ts';
import { readingsOfAccelerator } from '../task/accelerator-names.ts';
import type { Hardware } from './contract.ts';
import { acceleratorsIn } from './instance-types.ts';

const MILLION = 1_000_000n;

/** Why a cost cannot be told: a sentence without its end. */
export interface CostMistake {
  readonly mistake: string;
}

/** Rates of accelerators and of instance types, by cloud. Names count in any case. */
export class HardwareRates {
  /** Name in lower case → millionths of a unit for each accelerator and hour. */
  readonly #rates: ReadonlyMap<string, bigint>;
  /** The clouds that have a rate of their own; `null` = the others. */
  readonly #clouds: readonly (string | null)[];
  /** The accelerators, or instance types, that have a rate. */
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
   * In millionths of a unit for each hour, of all nodes; rounded up. Where the cloud is not known yet, the dearest counts. An instance type
   * that may have accelerators which nobody can count is a mistake.
   */
  costOf({ nodes, cloud, accelerators, instanceType, isSpot }: Hardware): bigint | CostMistake {
    const factor = isSpot ? this.#spotFactor : MILLION;
    const clouds = cloud === null ? this.#clouds : [cloud];
    if (accelerators === null && instanceType === null) {
      return 0n;
    }
    const counted = accelerators ?? acceleratorsIn(instanceType);
    if (counted === null) {
      const known = largest(clouds.map((one) => this.#ownRateOf(one, instanceType ?? '')));
      return known === undefined
        ? { mistake: `name the accelerators of ${instanceType?.slice(0, 100)}, which may have some` }
        : up(known * BigInt(nodes) * factor, MILLION);
    }
    const names = readingsOfAccelerator(counted.name, this.#names);
    const rate = largest(clouds.flatMap((one) => names.map((name) => this.#rateOf(one, name)))) ?? 0n;
    const count = BigInt(Math.ceil(counted.count * 1e6)) * BigInt(nodes);
    return up(rate * count * factor, MILLION * MILLION);
  }

  /** The accelerators, or instance types, that have a rate. */
  get names(): readonly string[] {
    return this.#names;
  }

  /** What `count` of a name cost in a cloud by a rate of this name, as `costOf`. `undefined` = there is none. */
  costByName(cloud: string | null, name: string, count: number, isSpot: boolean): bigint | undefined {
    const rate = name === '*' ? undefined : this.#ownRateOf(cloud, name);
    return rate === undefined ? undefined : this.#multiplied(rate, count, isSpot);
  }

  /** The same by the rate of everything else: `aws/*`, `*`. */
  costByDefault(cloud: string | null, count: number, isSpot: boolean): bigint | undefined {
    const rate = this.#inCloud(cloud, '*') ?? this.#rates.get('*');
    return rate === undefined ? undefined : this.#multiplied(rate, count, isSpot);
  }

  #multiplied(rate: bigint, count: number, isSpot: boolean): bigint {
    const factor = isSpot ? this.#spotFactor : MILLION;
    return up(rate * BigInt(Math.ceil(count * 1e6)) * factor, MILLION * MILLION);
  }

  #rateOf(cloud: string | null, name: string): bigint | undefined {
    return this.#ownRateOf(cloud, name) ?? this.#inCloud(cloud, '*') ?? this.#rates.get('*');
  }

  #ownRateOf(cloud: string | null, name: string): bigint | undefined {
    return this.#inCloud(cloud, name) ?? this.#rates.get(spelled(name));
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

function largest(rates: readonly (bigint | undefined)[]): bigint | undefined {
  return rates.reduce((most, one) => (most === undefined || (one !== undefined && one > most) ? one : most));
}

function up(amount: bigint, divisor: bigint): bigint {
  return (amount + divisor - 1n) / divisor;
}
