/**
 * What a lease or a change of one would take from each account, with what is left there, and fitting times.
 */
import { type Amount, budgetAccount, type Claim, type Precision } from '../../filter/claim.ts';
import { type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { added, sums } from '../accounting/alternatives.ts';
import type { FilterClaims } from '../accounting/charge-calculation.ts';
import { charge, notBefore } from '../accounting/recorded-claim.ts';
import type { LeasePreview } from './preview.ts';

export interface PreviewedCharge {
  readonly filter: string;
  /** `usage_budget/17`, `max_leases/project`. */
  readonly account: string;
  /** `usage`: in the unit of budgets (`Amount`). `held`: a number. */
  readonly kind: 'usage' | 'held';
  /** For a change: beyond the current charge; below 0 = the refund once Blazar has shown the change. */
  readonly amount: Amount;
  /** Precision of `amount`: hosts are chosen when the lease is created. */
  readonly precision: Precision;
  /** `null` = only counted, without a limit. */
  readonly limit: Amount | null;
  /** Taken by others; for a change, includes the current charge of the lease. */
  readonly taken: Amount;
  /** Left afterwards; below 0 = insufficient. `null` = no limit. */
  readonly left: Amount | null;
}

/** The claims of one filter on one account. */
interface Total {
  readonly filter: string;
  readonly claim: Claim;
  readonly precision: Precision;
}

/**
 * Ends that might fit with the same start, and starts that might fit with the same duration. Estimates: check
 * them with the filters.
 */
export interface FittingTimes {
  readonly ends: readonly Instant[];
  readonly starts: readonly Instant[];
}

export function fittingTimes(preview: LeasePreview): FittingTimes {
  const amounts = sums(wantedClaims(preview), charge);
  const room = new Map(
    previewedCharges(preview).flatMap(({ account, left }) => {
      const free = (left ?? 0n) + (amounts.get(account) ?? 0n);
      return left !== null && left < 0n ? [[account, free > 0n ? free : 0n] as const] : [];
    }),
  );
  const { budgets } = preview;
  const ends: bigint[] = [];
  const starts: bigint[] = budgets.map(({ validFrom }) => validFrom);
  for (const claim of wantedClaims(preview)) {
    const left = room.get(claim.account);
    if (left === undefined || claim.kind !== 'usage' || claim.perSecond <= 0n) {
      continue;
    }
    const seconds = left / claim.perSecond;
    ends.push(claim.from + seconds);
    // The last part of the lease fits: another budget must pay for everything before.
    const until = budgets.find((budget) => budgetAccount(budget) === claim.account)?.validUntil;
    starts.push((until ?? claim.until) - seconds);
  }
  return { ends: instants(ends), starts: instants(starts) };
}

function instants(seconds: readonly bigint[]): Instant[] {
  return [...new Set(seconds)].map((second) => second * MICROSECONDS_PER_SECOND);
}

/** In the order of the filters and their claims. Of several limits on one account, the smallest. */
export function previewedCharges(preview: LeasePreview): PreviewedCharge[] {
  const { row, overdue, balances, asked, changed, calculation } = preview;
  const before = changed === undefined ? new Map<string, Amount>() : calculation.givenBack;
  const current = changed?.current() ?? [];
  const isTold = asked.every(({ refusal }) => refusal === undefined);
  const totals = totalsOf(asked);
  // Claims that the lease drops are refunded. If a filter cannot compute its claims, this is unknown.
  const others = isTold ? [...totalsOf(current)].filter(([one]) => before.has(one) && !totals.has(one)) : [];
  const isSure = changed === undefined || row === undefined || isAsCharged(current, before, changed.begun);
  const amounts = sums(wantedClaims(preview), charge);
  const returned = added(overdue.map((one) => one.returned));
  return [...totals, ...others].map(([account, { filter, claim, precision }]) => {
    const amount = (amounts.get(account) ?? 0n) - (before.get(account) ?? 0n);
    const taken = (balances.get(account) ?? 0n) - (returned.get(account) ?? 0n);
    const limit = claim.limit ?? null;
    const left = limit === null ? null : limit - taken - amount;
    const { kind } = claim;
    return { filter, account, kind, amount, precision: isSure ? precision : 'about', limit, taken, left };
  });
}

/** The claims from now on: past use of a running lease does not change. */
function wantedClaims({ wanted, changed }: LeasePreview): Claim[] {
  const { begun } = changed ?? {};
  const claims = wanted.byFilter.flatMap((one) => one.claims);
  return begun === undefined ? claims : claims.map((claim) => notBefore(claim, begun));
}

/**
 * Whether the filters' claims for the current lease equal its charge. If not, they do not see all of its
 * cost, such as its hosts.
 */
function isAsCharged(
  current: readonly FilterClaims[],
  charged: ReadonlyMap<string, Amount>,
  begun: bigint | undefined,
): boolean {
  const claims = current.flatMap((one) => one.claims);
  const claimed = sums(begun === undefined ? claims : claims.map((claim) => notBefore(claim, begun)), charge);
  const accounts = new Set([...claimed.keys(), ...charged.keys()]);
  return [...accounts].every((account) => (claimed.get(account) ?? 0n) === (charged.get(account) ?? 0n));
}

function totalsOf(byFilter: readonly FilterClaims[]): Map<string, Total> {
  const totals = new Map<string, Total>();
  for (const { filter, claims } of byFilter) {
    for (const claim of claims) {
      const before = totals.get(claim.account);
      const { precision = 'exact' } = claim;
      totals.set(claim.account, {
        filter: before?.filter ?? filter,
        claim: before === undefined || isTighter(claim, before.claim) ? claim : before.claim,
        precision: before === undefined ? precision : vaguer(before.precision, precision),
      });
    }
  }
  return totals;
}

function isTighter({ limit }: Claim, { limit: other }: Claim): boolean {
  return limit !== undefined && (other === undefined || limit < other);
}

const VAGUENESS: readonly Precision[] = ['exact', 'at-most', 'about'];

function vaguer(one: Precision, other: Precision): Precision {
  return VAGUENESS.indexOf(one) > VAGUENESS.indexOf(other) ? one : other;
}
