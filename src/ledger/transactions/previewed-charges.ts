/** What a new lease would take from each account beside what is left there, and when it would fit. */
import { type Amount, budgetAccount, type Claim, type Precision } from '../../filter/claim.ts';
import { type Instant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { added } from '../accounting/alternatives.ts';
import { charge } from '../accounting/recorded-claim.ts';
import type { LeasePreview } from './preview.ts';

export interface PreviewedCharge {
  readonly filter: string;
  readonly account: string;
  readonly kind: 'usage' | 'held';
  readonly amount: Amount;
  readonly precision: Precision;
  /** `null` = only counted, without a limit. */
  readonly limit: Amount | null;
  /** What others have taken. */
  readonly taken: Amount;
  /** What would be left after it; less than 0 = too little is left. `null` = there is no limit. */
  readonly left: Amount | null;
}

/** The claims of one filter on one account. */
interface Total {
  readonly filter: string;
  readonly claim: Claim;
  readonly amount: Amount;
  readonly precision: Precision;
}

/** When a lease might end to fit, with the same start; and when it might start, as long as it is. Guesses: ask the filters. */
export interface FittingTimes {
  readonly ends: readonly Instant[];
  readonly starts: readonly Instant[];
}

export function fittingTimes(preview: LeasePreview): FittingTimes {
  const room = new Map(
    previewedCharges(preview).flatMap(({ account, amount, left }) =>
      left !== null && left < 0n ? [[account, left + amount > 0n ? left + amount : 0n] as const] : [],
    ),
  );
  const { budgets, wanted } = preview;
  const ends: bigint[] = [];
  const starts: bigint[] = budgets.map(({ validFrom }) => validFrom);
  for (const claim of wanted.byFilter.flatMap(({ claims }) => claims)) {
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
export function previewedCharges({ wanted, overdue, balances }: LeasePreview): PreviewedCharge[] {
  const totals = new Map<string, Total>();
  for (const { filter, claims } of wanted.byFilter) {
    for (const claim of claims) {
      const before = totals.get(claim.account);
      const { precision = 'exact' } = claim;
      totals.set(claim.account, {
        filter: before?.filter ?? filter,
        claim: before === undefined || isTighter(claim, before.claim) ? claim : before.claim,
        amount: (before?.amount ?? 0n) + charge(claim),
        precision: before === undefined ? precision : vaguer(before.precision, precision),
      });
    }
  }
  const returned = added(overdue.map((one) => one.returned));
  return [...totals].map(([account, { filter, claim, amount, precision }]) => {
    const taken = (balances.get(account) ?? 0n) - (returned.get(account) ?? 0n);
    const limit = claim.limit ?? null;
    const left = limit === null ? null : limit - taken - amount;
    return { filter, account, kind: claim.kind, amount, precision, limit, taken, left };
  });
}

function isTighter({ limit }: Claim, { limit: other }: Claim): boolean {
  return limit !== undefined && (other === undefined || limit < other);
}

const VAGUENESS: readonly Precision[] = ['exact', 'at-most', 'about'];

function vaguer(one: Precision, other: Precision): Precision {
  return VAGUENESS.indexOf(one) > VAGUENESS.indexOf(other) ? one : other;
}
