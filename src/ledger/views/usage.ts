/** What a project used, grouped; and the course of its budgets. */
import type { Wait } from '../../deadline.ts';
import type { Amount } from '../../filter/amount.ts';
import type { Ledger } from '../ledger.ts';

export interface UsageQuery {
  readonly projectId: string;
  /** Seconds of the epoch; at most 400 days. */
  readonly from: bigint;
  readonly until: bigint;
  readonly groupBy: 'user' | 'resource_type' | 'day';
}

export interface UsageGroup {
  /** The id of a user, a resource type, or a day as `2026-11-22` (UTC). */
  readonly key: string;
  /** What leases took of budgets of the project in that time, past and planned. `null` for resource types, which have no share of a cost. */
  readonly amount: Amount | null;
  /** Hours of resources: hosts, instances or addresses times hours, in seconds. */
  readonly resourceSeconds: bigint;
  readonly leases: number;
}

export interface UsageReport {
  readonly groups: readonly UsageGroup[];
  /** Whether only a part of the leases was read, because there are too many. */
  readonly isPartial: boolean;
}

/** Sorted: days by date, others by what they used, the most first. @throws LedgerUnavailableError */
export function usageOf(_ledger: Ledger, _query: UsageQuery, _wait: Wait): Promise<UsageReport> {
  throw new Error('not built yet');
}

/** A budget over time. */
export interface BudgetCourse {
  readonly budget: bigint;
  readonly amount: Amount;
  /** Seconds of the epoch, as all times here. */
  readonly validFrom: bigint;
  readonly validUntil: bigint;
  readonly now: bigint;
  /** Sorted by time. `used`: what leases have used of the budget up to then; for times after `now` what they will, as planned. */
  readonly points: readonly { readonly at: bigint; readonly used: Amount }[];
  readonly isPartial: boolean;
}

/** The course of each of the project's own budgets that is in force at some time from `from` until `until`. @throws LedgerUnavailableError */
export function budgetCourses(
  _ledger: Ledger,
  _query: {
    readonly projectId: string;
    readonly from: bigint;
    readonly until: bigint;
    readonly points: number;
  },
  _wait: Wait,
): Promise<readonly BudgetCourse[]> {
  throw new Error('not built yet');
}
