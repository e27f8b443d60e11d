/** What a lease or a change of one would cost, whether it would be allowed, and what would be: types, and the names of changes. */
import type { Amount, Precision } from '../../filter/claim.ts';
import type { Decision } from '../../filter/verdict.ts';
import type { Lease } from '../../lease/lease.ts';

export interface EstimatedCharge {
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

/** Two only where no single one is enough. */
export const SUGGESTED_CHANGES = [
  'shorter',
  'smaller',
  'later',
  'smaller-shorter',
  'smaller-later',
  'shorter-later',
] as const;
export type SuggestedChange = (typeof SUGGESTED_CHANGES)[number];

/** A lease near the wanted one that every filter allows now. */
export interface Suggestion {
  readonly change: SuggestedChange;
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
