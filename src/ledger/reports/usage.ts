/** The usage of a project, grouped. */

import type { Wait } from '../../base/deadline.ts';
import { timedYield } from '../../base/yield-to-event-loop.ts';
import type { Amount } from '../../filter/claim.ts';
import type { FoldedTotals } from '../folding/totals.ts';
import type { Ledger } from '../ledger.ts';
import { Cumulative, firstAtLeast, type Share, usedBefore } from './charges.ts';
import { type LeaseSpan, leaseSpan, type SpanLease } from './lease-span.ts';
import { compared } from './usage/sums.ts';

export interface UsageQuery {
  readonly projectId: string;
  /** Seconds of the epoch; at most `MAX_DAYS` days. */
  readonly from: bigint;
  readonly until: bigint;
  readonly groupBy: 'user' | 'resource_type' | 'day';
}

export const MAX_DAYS = 400;

export interface UsageGroup {
  /** A user id, a resource type, or a day such as `2026-11-22` (UTC). */
  readonly key: string;
  /**
   * What leases took from the project's budgets in this time, past and planned. `null` for resource types,
   * which have no cost. Unconfirmed leases count with their most expensive alternative.
   */
  readonly amount: Amount | null;
  /** Reserved hosts, instances or addresses, times seconds. Missing for leases of older versions. */
  readonly resourceSeconds: bigint;
  /** Leases in this time; for a type, leases that reserve it. */
  readonly leases: number;
}

export interface UsageReport {
  readonly groups: readonly UsageGroup[];
  /**
   * Whether there are too many leases, or some are folded: then only usage since `from` is counted, and that
   * is exact.
   */
  readonly isPartial: boolean;
  /** Start of the counted time, in seconds of the epoch. Equal to the query's unless `isPartial`. */
  readonly from: bigint;
  /** Leases in this time with unknown resources: recorded by an older version. */
  readonly leasesOfUnknownResources: number;
  /** Folded leases of the project at any time, which are not counted; `undefined` = none. */
  readonly folded: FoldedTotals | undefined;
}

const DAY = 86_400n;
/** Leases that are added before yielding to the event loop. */
const PIECE = 100;

/**
 * Sorted: days by date, other groups by usage, largest first. A lease counts for the project's own budgets,
 * otherwise for its user's. Over the validity of a budget, the amounts of all users, or of all days, add up
 * to exactly what is taken from it, unless it was charged outside that time. @throws LedgerUnavailableError
 */
export async function usageOf(ledger: Ledger, query: UsageQuery, wait: Wait): Promise<UsageReport> {
  return grouped(await leaseSpan(ledger, query, wait), query);
}

/** Groups by several keys; the leases are read once. @throws LedgerUnavailableError */
export async function usagesOf<const Keys extends readonly UsageQuery['groupBy'][]>(
  ledger: Ledger,
  query: Omit<UsageQuery, 'groupBy'>,
  keys: Keys,
  wait: Wait,
): Promise<{ readonly [Key in Keys[number]]: UsageReport }> {
  const span = await leaseSpan(ledger, query, wait);
  const reports: Partial<Record<UsageQuery['groupBy'], UsageReport>> = {};
  for (const groupBy of keys) {
    reports[groupBy] = await grouped(span, { ...query, groupBy });
  }
  return reports as { readonly [Key in Keys[number]]: UsageReport };
}

async function grouped(
  { leases, completeFrom: from, folded }: LeaseSpan,
  query: UsageQuery,
): Promise<UsageReport> {
  const { until, groupBy } = query;
  const sums = groupBy === 'day' ? new DaySums(from, until) : new KeySums(from, until, groupBy === 'user');
  const yieldIfDue = timedYield();
  let unknown = 0;
  for (const [index, lease] of leases.entries()) {
    if (index % PIECE === 0) {
      await yieldIfDue();
    }
    if (lease.from < until && lease.until > from) {
      sums.add(lease);
      unknown += lease.resources === undefined ? 1 : 0;
    }
  }
  const isPartial = from > query.from;
  return { groups: sums.groups(), isPartial, from, leasesOfUnknownResources: unknown, folded };
}

class KeySums {
  readonly #from: bigint;
  readonly #until: bigint;
  readonly #isByUser: boolean;
  readonly #sums = new Map<string, { amount: Amount; resourceSeconds: bigint; leases: number }>();

  constructor(from: bigint, until: bigint, isByUser: boolean) {
    this.#from = from;
    this.#until = until;
    this.#isByUser = isByUser;
  }

  add({ userId, shares, resources = [] }: SpanLease): void {
    if (this.#isByUser) {
      this.#add(userId, this.#within(shares), this.#within(resources));
      return;
    }
    const types = new Map<string, bigint>();
    for (const share of resources) {
      types.set(share.account, (types.get(share.account) ?? 0n) + this.#within([share]));
    }
    for (const [type, seconds] of types) {
      if (seconds > 0n) {
        this.#add(type, 0n, seconds);
      }
    }
  }

  groups(): UsageGroup[] {
    return [...this.#sums]
      .map(([key, { amount, ...rest }]) => ({ key, amount: this.#isByUser ? amount : null, ...rest }))
      .sort(
        (a, b) =>
          compared(b.amount ?? 0n, a.amount ?? 0n) ||
          compared(b.resourceSeconds, a.resourceSeconds) ||
          compared(a.key, b.key),
      );
  }

  #within(shares: readonly Share[]): bigint {
    return shares.reduce(
      (sum, share) => sum + usedBefore(share, this.#until) - usedBefore(share, this.#from),
      0n,
    );
  }

  #add(key: string, amount: Amount, resourceSeconds: bigint): void {
    const sum = this.#sums.get(key) ?? { amount: 0n, resourceSeconds: 0n, leases: 0 };
    sum.amount += amount;
    sum.resourceSeconds += resourceSeconds;
    sum.leases += 1;
    this.#sums.set(key, sum);
  }
}

class DaySums {
  /** Starts of days; the first and last time are from the query. */
  readonly #times: bigint[] = [];
  readonly #amounts: Cumulative;
  readonly #resources: Cumulative;
  /** Change of the number of leases from the previous day. */
  readonly #changes: number[];

  constructor(from: bigint, until: bigint) {
    for (let time = from; time < until; time = (floorDiv(time, DAY) + 1n) * DAY) {
      this.#times.push(time);
    }
    this.#times.push(until);
    this.#amounts = new Cumulative(this.#times);
    this.#resources = new Cumulative(this.#times);
    this.#changes = this.#times.map(() => 0);
  }

  add({ shares, resources = [], from, until }: SpanLease): void {
    for (const share of shares) {
      this.#amounts.add(share);
    }
    for (const share of resources) {
      this.#resources.add(share);
    }
    this.#change(Math.max(0, firstAtLeast(this.#times, from + 1n) - 1), 1);
    this.#change(firstAtLeast(this.#times, until), -1);
  }

  groups(): UsageGroup[] {
    const amounts = this.#amounts.totals();
    const resources = this.#resources.totals();
    let leases = 0;
    return this.#times.slice(0, -1).flatMap((time, index) => {
      leases += this.#changes[index] ?? 0;
      const day = {
        key: new Date(Number(time) * 1000).toISOString().slice(0, 10),
        amount: (amounts[index + 1] ?? 0n) - (amounts[index] ?? 0n),
        resourceSeconds: (resources[index + 1] ?? 0n) - (resources[index] ?? 0n),
        leases,
      };
      return leases === 0 && day.amount === 0n ? [] : [day];
    });
  }

  #change(index: number, by: number): void {
    this.#changes[index] = (this.#changes[index] ?? 0) + by;
  }
}

/** Rounds down, also before 1970. */
function floorDiv(number: bigint, divisor: bigint): bigint {
  const rest = ((number % divisor) + divisor) % divisor;
  return (number - rest) / divisor;
}
