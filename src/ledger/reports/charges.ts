/** The use of a lease over time: its claims, spread so that their sum is exactly the balance. */

import { type Amount, larger, smaller } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { type Alternative, alternativesOf, chargedBy } from '../accounting/alternatives.ts';
import { charge, parseClaims, type RecordedClaim } from '../accounting/recorded-claim.ts';
import type { LeaseRow } from '../storage/schema.ts';
import { isBudgetAccount } from './reports.ts';

/** A part of a lease's charge, used at a constant rate between two seconds. */
export interface Share {
  readonly account: string;
  readonly amount: Amount;
  readonly from: bigint;
  /** After `from`. */
  readonly until: bigint;
}

/** In seconds of the epoch. */
interface Validity {
  readonly from: bigint;
  readonly until: bigint;
}

/** The columns that determine the charge. */
export type ChargedRow = Pick<
  LeaseRow,
  | 'starts_at'
  | 'ends_at'
  | 'ended_at'
  | 'state'
  | 'demand'
  | 'claims'
  | 'alternatives'
  | 'recorded_at'
  | 'touched_at'
  | 'resources'
>;

/**
 * Whether the charge follows from the row alone: the lease was not changed since it was recorded, and did not
 * end early.
 */
export function hasCharge(row: ChargedRow): boolean {
  return (
    // Rows of older versions do not show whether they were changed.
    row.resources !== null &&
    row.touched_at === row.recorded_at &&
    row.alternatives === null &&
    (row.state === 'open' || row.ended_at === row.ends_at || (row.ended_at ?? 0n) <= row.starts_at)
  );
}

/**
 * What a lease takes from budgets, past and planned. `charged`: account → the exact sum of its entries;
 * `undefined` = computed from the row. `budgets`: account → its validity. With several alternatives, the
 * most expensive counts. Use before the last change of a running lease is only known as a sum; it is spread evenly
 * from the start of the lease, or of the budget, to that change.
 */
export function sharesOf(
  row: ChargedRow,
  charged: ReadonlyMap<string, Amount> | undefined,
  budgets: ReadonlyMap<string, Validity>,
): Share[] {
  const end = endedBefore(row);
  if (charged === undefined && row.alternatives === null) {
    // The common case: nothing to compare.
    return parseClaims(row.claims).flatMap((claim) =>
      isBudgetAccount(claim.account) ? shareOf(claim, claim.account, end) : [],
    );
  }
  const alternatives = alternativesOf(row);
  const byAccount = new Map<string, Share[]>();
  const accounts = charged?.keys() ?? chargedBy(alternatives).keys();
  for (const account of accounts) {
    if (isBudgetAccount(account)) {
      byAccount.set(account, mostExpensive(alternatives, account, end));
    }
  }
  if (charged === undefined) {
    return [...byAccount.values()].flat();
  }
  const start = row.starts_at / MICROSECONDS_PER_SECOND;
  const changed = row.touched_at / MICROSECONDS_PER_SECOND;
  return [...byAccount].flatMap(([account, shares]) => {
    const validity = budgets.get(account);
    const from = validity === undefined ? start : larger(start, validity.from);
    const last = shares[0]?.from ?? end ?? changed;
    const until = validity === undefined ? last : smaller(last, validity.until);
    return adjusted(shares, { account, total: charged.get(account) ?? 0n, from, until });
  });
}

/** The amount of a share used before a second. Differences add up to exactly the share. */
export function usedBefore({ amount, from, until }: Share, second: bigint): Amount {
  if (second <= from) {
    return 0n;
  }
  return second >= until ? amount : (amount * (second - from)) / (until - from);
}

/** In seconds; `undefined` = not ended before its end date. */
export function endedBefore({ state, ended_at: endedAt, ends_at: endsAt }: ChargedRow): bigint | undefined {
  return state === 'ended' && endedAt !== null && endedAt < endsAt
    ? endedAt / MICROSECONDS_PER_SECOND
    : undefined;
}

function mostExpensive(
  alternatives: readonly Alternative[],
  account: string,
  end: bigint | undefined,
): Share[] {
  let most: Share[] = [];
  for (const { claims } of alternatives) {
    const shares = claims.flatMap((claim) => shareOf(claim, account, end));
    if (sum(shares) > sum(most)) {
      most = shares;
    }
  }
  return most.sort((a, b) => (a.from < b.from ? -1 : 1));
}

function shareOf(claim: RecordedClaim, account: string, end: bigint | undefined): Share[] {
  if (claim.account !== account || claim.kind !== 'usage') {
    return [];
  }
  const until = end === undefined ? claim.until : smaller(end, claim.until);
  return claim.from < until
    ? [{ account, amount: charge({ ...claim, until }), from: claim.from, until }]
    : [];
}

/**
 * Adjusts shares to the charged sum: a missing amount was used before them, within `before`; an excess is cut
 * from the last ones.
 */
function adjusted(
  shares: readonly Share[],
  { account, total, ...before }: Validity & { readonly account: string; readonly total: Amount },
): Share[] {
  const missing = total - sum(shares);
  if (missing > 0n) {
    // At least one second, the first.
    const until = larger(before.until, before.from + 1n);
    return [{ account, amount: missing, from: before.from, until }, ...shares];
  }
  let left = total;
  return shares.flatMap((share) => {
    const amount = smaller(share.amount, left);
    left -= amount;
    if (amount <= 0n) {
      return [];
    }
    const length = share.until - share.from;
    // At the same rate for a shorter time; at least one second.
    const seconds = (length * amount + share.amount - 1n) / share.amount;
    return [{ ...share, amount, until: share.from + seconds }];
  });
}

function sum(shares: readonly Share[]): Amount {
  return shares.reduce((total, { amount }) => total + amount, 0n);
}

export class Cumulative {
  readonly #times: readonly bigint[];
  /** Used by the time with this index and all later times: `fixed + rate × time`. */
  readonly #fixed: Amount[];
  readonly #rates: Amount[];
  /** Used by this time only. */
  readonly #single: Amount[];

  /** `times`: sorted, in seconds of the epoch. */
  constructor(times: readonly bigint[]) {
    this.#times = times;
    this.#fixed = times.map(() => 0n);
    this.#rates = times.map(() => 0n);
    this.#single = times.map(() => 0n);
  }

  add(share: Share): void {
    const { amount, from, until } = share;
    const begun = firstAtLeast(this.#times, from);
    const over = firstAtLeast(this.#times, until);
    const length = until - from;
    if (amount % length === 0n) {
      const rate = amount / length;
      this.#increase(begun, -rate * from, rate);
      this.#increase(over, rate * from + amount, -rate);
      return;
    }
    for (let index = begun; index < over; index += 1) {
      this.#single[index] = (this.#single[index] ?? 0n) + usedBefore(share, this.#times[index] ?? 0n);
    }
    this.#increase(over, amount, 0n);
  }

  totals(): Amount[] {
    let fixed = 0n;
    let rate = 0n;
    return this.#times.map((time, index) => {
      fixed += this.#fixed[index] ?? 0n;
      rate += this.#rates[index] ?? 0n;
      return fixed + rate * time + (this.#single[index] ?? 0n);
    });
  }

  #increase(index: number, fixed: Amount, rate: Amount): void {
    if (index < this.#times.length) {
      this.#fixed[index] = (this.#fixed[index] ?? 0n) + fixed;
      this.#rates[index] = (this.#rates[index] ?? 0n) + rate;
    }
  }
}

/** The index of the first time that is not before `time`; the length if there is none. */
export function firstAtLeast(times: readonly bigint[], time: bigint): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0n) < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
