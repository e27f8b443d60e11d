/** Types of an estimate: the cost of a lease or a change, whether it would be allowed, and suggested changes. */
import type { Decision } from '../../filter/verdict.ts';
import type { Lease } from '../../lease/lease.ts';
import type { PreviewedCharge } from '../../ledger/transactions/previewed-charges.ts';

/** What a lease, or a change of one, would take from one account. */
export type EstimatedCharge = PreviewedCharge;

/** Pairs only if no single change is enough. */
export const SUGGESTED_CHANGES = [
  'shorter',
  'smaller',
  'later',
  'smaller-shorter',
  'smaller-later',
  'shorter-later',
] as const;
export type SuggestedChange = (typeof SUGGESTED_CHANGES)[number];

/** A lease near the requested one that every filter allows now. */
export interface Suggestion {
  readonly change: SuggestedChange;
  readonly lease: Lease;
  /** For display: `End on 2026-12-03 at 09:00 instead of 2026-12-11 at 09:00.` */
  readonly text: string;
  readonly charges: readonly EstimatedCharge[];
}

export interface Estimate {
  /** The answers of all filters (`explain`); nothing is recorded. */
  readonly decision: Decision;
  readonly charges: readonly EstimatedCharge[];
  /** For a refused lease, nearest first. Empty = none was found, or the lease is allowed. */
  readonly suggestions: readonly Suggestion[];
  /** For a refused lease: what was searched, and why there is no more. For display. */
  readonly searched: string | null;
}
