/** What a lease would cost, whether it would be allowed, and what would be: types only. */
import type { Amount, Precision } from '../../filter/claim.ts';
import type { Decision } from '../../filter/verdict.ts';
import type { Lease } from '../../lease/lease.ts';

export interface EstimatedCharge {
  readonly filter: string;
  /** `usage_budget/17`, `max_leases/project`. */
  readonly account: string;
  /** `usage`: as budgets count (`Amount`). `held`: a number. */
  readonly kind: 'usage' | 'held';
  readonly amount: Amount;
  /** How sure `amount` is: which hosts a lease gets is decided when it is created. */
  readonly precision: Precision;
  /** `null` = only counted, without a limit. */
  readonly limit: Amount | null;
  /** What others have taken. */
  readonly taken: Amount;
  /** What would be left after it; less than 0 = too little is left. `null` = there is no limit. */
  readonly left: Amount | null;
}

/** A lease near the wanted one that every filter allows now. */
export interface Suggestion {
  readonly change: 'shorter' | 'smaller' | 'later';
  readonly lease: Lease;
  /** For people: `End on 2026-12-03 at 09:00 instead of 2026-12-11 at 09:00.` */
  readonly text: string;
  readonly charges: readonly EstimatedCharge[];
}

export interface Estimate {
  /** The answer of every filter (`explain`); nothing is recorded. */
  readonly decision: Decision;
  readonly charges: readonly EstimatedCharge[];
  /** For a refused lease, the nearest first. Empty = none was found, or the lease is allowed. */
  readonly suggestions: readonly Suggestion[];
  /** For a refused lease: what was looked for, and why there is no more. For people. */
  readonly searched: string | null;
}
