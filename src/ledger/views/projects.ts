/** The projects of the ledger, in pages. */
import type { Wait } from '../../deadline.ts';
import type { Amount } from '../../filter/amount.ts';
import type { Ledger } from '../ledger.ts';
import type { PageOf, PageQuery } from './pages.ts';

export interface ProjectsQuery extends PageQuery {
  /** Only these; `undefined` = all. */
  readonly projectIds: readonly string[] | undefined;
  /** Only ids that contain this text, whatever the case; `undefined` = all. */
  readonly search: string | undefined;
}

export interface ProjectRow {
  readonly projectId: string;
  /** Pending and active leases; at most `COUNTED` are counted. */
  readonly openLeases: number;
  /** The project's own budget that is in force now; `null` = there is none. */
  readonly budget: {
    readonly amount: Amount;
    readonly taken: Amount;
    readonly left: Amount;
    /** Seconds of the epoch. */
    readonly validUntil: bigint;
  } | null;
}

/** Projects with leases or budgets, sorted by id. @throws LedgerUnavailableError, CursorError */
export function listProjects(
  _ledger: Ledger,
  _query: ProjectsQuery,
  _wait: Wait,
): Promise<PageOf<ProjectRow>> {
  throw new Error('not built yet');
}
