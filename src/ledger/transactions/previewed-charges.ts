/** What a lease, or a change of one, would take from each account beside what is left there, and when it would fit. */
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
  /** `usage`: as budgets count (`Amount`). `held`: a number. */
  readonly kind: 'usage' | 'held';
  /** Of a change: beyond what the lease is charged already; less than 0 = so much is given back once Blazar has shown the change. */
  readonly amount: Amount;
  /** How sure `amount` is: which hosts a lease gets is decided when it is created. */
  readonly precision: Precision;
  /** `null` = only counted, without a limit. */
  readonly limit: Amount | null;
  /** What others have taken; of a change, with what the lease is charged already. */
  readonly taken: Amount;
  /** What would be left after it; less than 0 = too little is left. `null` = there is no limit. */
  readonly left: Amount | null;
}

/** The claims of one filter on one account. */
interface Total {
  readonly filter: string;
  readonly claim: Claim;
  readonly precision: Precision;
}

/** When a lease might end to fit, with the same start; and when it might start, as long as it is. Guesses: ask the filters. */
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
    // Its last part fits: all before would have to be paid from elsewhere.
    const until = budgets.find((budget) => budgetAccount(budget) === claim.account)?.validUntil;
    starts.push((until ?? claim.until) - seconds);
  }
  return { ends: instants(ends), starts: instants(starts) };
}

function instants(seconds: readonly bigint[]): Instant[] {
  return [...new Set(seconds)].map((second) => second * MICROSECONDS_PER_SECOND);
}

/** In the order of the filters and of their claims. Of several limits of one account, the smallest. */
export function previewedCharges(preview: LeasePreview): PreviewedCharge[] {
  const { row, overdue, balances, asked, changed, calculation } = preview;
  const before = changed === undefined ? new Map<string, Amount>() : calculation.givenBack;
  const current = changed?.current() ?? [];
  const isTold = asked.every(({ refusal }) => refusal === undefined);
  const totals = totalsOf(asked);
  // What the lease no longer takes is given back there; of a lease whose filters cannot tell what it takes, nobody knows.
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

/** What is claimed from now on: what a running lease has used stays as it is. */
function wantedClaims({ wanted, changed }: LeasePreview): Claim[] {
  const { begun } = changed ?? {};
  const claims = wanted.byFilter.flatMap((one) => one.claims);
  return begun === undefined ? claims : claims.map((claim) => notBefore(claim, begun));
}

/** Whether the filters claim for the lease as it is what it is charged. If not, they do not see all that it costs, such as its hosts. */
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
