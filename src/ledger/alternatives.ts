/**
 * What a lease may be at the moment. Blazar asks before it changes a lease, and the change may fail after our yes. Until a later
 * request shows the lease, it may be as before, as requested, or something between: the alternatives. It is charged for the
 * dearest of them.
 */

import type { Amount } from '../filter/amount.ts';
import type { Instant } from '../lease/dates.ts';
import {
  charge,
  formatClaims,
  notBefore,
  parseClaims,
  type RecordedClaim,
  refund,
} from './recorded-claim.ts';
import type { LeaseRow } from './schema.ts';

export interface Alternative {
  readonly start: Instant;
  readonly end: Instant;
  /** From `demandOf`. */
  readonly demand: string;
  readonly claims: readonly RecordedClaim[];
}

type Recorded = Pick<LeaseRow, 'starts_at' | 'ends_at' | 'demand' | 'claims' | 'alternatives'>;

/** The alternatives of a row; the first is what was requested last. */
export function alternativesOf(row: Recorded): Alternative[] {
  const first = { start: row.starts_at, end: row.ends_at, demand: row.demand };
  if (row.alternatives === null) {
    return [{ ...first, claims: parseClaims(row.claims) }];
  }
  const written: unknown = JSON.parse(row.alternatives);
  if (!Array.isArray(written) || written.length === 0) {
    throw new TypeError('expected a list of alternatives');
  }
  return written.map(parsed);
}

/** The columns of a row with these alternatives. */
export function recordedAs(alternatives: readonly [Alternative, ...Alternative[]]): Recorded {
  const [{ start, demand, claims }] = alternatives;
  return {
    starts_at: start,
    // The latest possible end: until then it counts.
    ends_at: alternatives.map(({ end }) => end).reduce(later),
    demand,
    claims: formatClaims(claims),
    alternatives: alternatives.length === 1 ? null : JSON.stringify(alternatives.map(formatted)),
  };
}

/** Without duplicates, in the same order. */
export function distinct<Some extends Alternative>(alternatives: readonly Some[]): Some[] {
  const seen = new Map<string, Some>();
  for (const alternative of alternatives) {
    const text = JSON.stringify(formatted(alternative));
    if (!seen.has(text)) {
      seen.set(text, alternative);
    }
  }
  return [...seen.values()];
}

/** Account → the most that any alternative takes. */
export function chargedBy(alternatives: readonly Pick<Alternative, 'claims'>[]): Map<string, Amount> {
  return most(alternatives.map(({ claims }) => sums(claims, charge)));
}

/** Account → the most that any alternative holds. */
export function heldBy(alternatives: readonly Pick<Alternative, 'claims'>[]): Map<string, Amount> {
  return most(
    alternatives.map(({ claims }) =>
      sums(
        claims.filter(({ kind }) => kind === 'held'),
        charge,
      ),
    ),
  );
}

/**
 * Account → the refund when the lease ends at `second`: what is charged, minus the most that any alternative has used by then.
 * `start`: when the lease has begun, or will begin, if that is known: an alternative that begins earlier has used nothing before it.
 */
export function refundOf(
  alternatives: readonly Pick<Alternative, 'claims'>[],
  second: bigint,
  start?: bigint,
): Map<string, Amount> {
  const from = start === undefined || start < second ? start : second;
  const used = most(
    alternatives.map(({ claims }) =>
      sums(
        claims,
        (claim) => charge(from === undefined ? claim : notBefore(claim, from)) - refund(claim, second),
      ),
    ),
  );
  const back = chargedBy(alternatives);
  for (const [account, amount] of back) {
    back.set(account, amount - (used.get(account) ?? 0n));
  }
  return back;
}

/** Account → the sum of the claims on it. */
export function sums<Some extends RecordedClaim>(
  claims: readonly Some[],
  amountOf: (claim: Some) => Amount,
): Map<string, Amount> {
  const total = new Map<string, Amount>();
  for (const claim of claims) {
    total.set(claim.account, (total.get(claim.account) ?? 0n) + amountOf(claim));
  }
  return total;
}

/** Account → the largest of its amounts. */
export function most(maps: readonly ReadonlyMap<string, Amount>[]): Map<string, Amount> {
  const largest = new Map<string, Amount>();
  for (const one of maps) {
    for (const [account, amount] of one) {
      const before = largest.get(account);
      largest.set(account, before === undefined || amount > before ? amount : before);
    }
  }
  return largest;
}

/** What remains of an alternative from a second on. */
export function without(one: Alternative, second: bigint): Alternative {
  return { ...one, claims: one.claims.map((claim) => notBefore(claim, second)) };
}

/** Whether `one` takes at least as much as `rest` of every account, at every time. */
export function covers(one: Alternative, rest: Alternative): boolean {
  return (
    one.end >= rest.end &&
    rest.claims.every((other) =>
      one.claims.some((claim) =>
        claim.account !== other.account
          ? false
          : claim.kind === 'held'
            ? other.kind === 'held' && claim.amount >= other.amount
            : other.kind === 'usage' &&
              claim.perSecond >= other.perSecond &&
              claim.from <= other.from &&
              claim.until >= other.until,
      ),
    )
  );
}

function later(a: Instant, b: Instant): Instant {
  return a < b ? b : a;
}

function formatted({ start, end, demand, claims }: Alternative): [string, string, string, string] {
  return [String(start), String(end), demand, formatClaims(claims)];
}

function parsed(written: unknown): Alternative {
  if (!Array.isArray(written) || !written.every((part) => typeof part === 'string')) {
    throw new TypeError('expected an alternative as a list of texts');
  }
  const [start = '', end = '', demand = '', claims = ''] = written;
  return { start: BigInt(start), end: BigInt(end), demand, claims: parseClaims(claims) };
}
