/** All that the page of a project shows. */
import type { DecisionRecord } from '../../../decisions/record.ts';
import type { Instant } from '../../../lease/dates.ts';
import type { BudgetView } from '../../../ledger/budgets/view.ts';
import type { FoldedTotals } from '../../../ledger/folding/totals.ts';
import type { LeaseRowView } from '../../../ledger/reports/leases.ts';
import type { PageOf } from '../../../ledger/reports/pages.ts';
import type { BudgetCourse } from '../../../ledger/reports/usage-over-time.ts';
import type { FilterLimits } from '../../api/project-limits.ts';
import type { NameOf } from '../account.tsx';
import type { TimeWindow } from './time-window.ts';
import type { UsageData } from './usage-tables.tsx';

export interface Refusal {
  readonly record: DecisionRecord;
  /** The dates of the lease, if they are known. */
  readonly start: Instant | undefined;
  readonly end: Instant | undefined;
  readonly decisionPath: string;
  /** "Try it" with the same wish filled in. */
  readonly tryPath: string;
}

export interface ProjectData {
  readonly projectId: string;
  readonly unit: string;
  readonly nameOf: NameOf;
  /** Microseconds of the epoch. */
  readonly now: Instant;
  readonly window: TimeWindow & { readonly mistake?: string | undefined };
  /** Those in force now, the project's own first; the first page. */
  readonly budgets: PageOf<BudgetView>;
  readonly courses: readonly BudgetCourse[];
  /** Of the window, a page. */
  readonly leases: PageOf<LeaseRowView>;
  /** Leases that no list has any more. `undefined` = none. */
  readonly folded: FoldedTotals | undefined;
  /** Of the page. */
  readonly query: URLSearchParams;
  readonly usage: UsageData;
  /** The latest. */
  readonly refusals: readonly Refusal[];
  /** Where all refusals of the project are. */
  readonly allRefusalsPath: string;
  readonly limits: readonly FilterLimits[];
  readonly isExempt: boolean;
  /** What the person may do here. */
  readonly may: {
    readonly estimate: boolean;
    readonly seeConfiguration: boolean;
    readonly setBudgets: boolean;
  };
}
