/** The leases of a project, or of all, in pages. */
import type { Wait } from '../../deadline.ts';
import type { Amount } from '../../filter/amount.ts';
import type { Ledger } from '../ledger.ts';
import type { PageOf, PageQuery } from './pages.ts';

export interface LeasesQuery extends PageQuery {
  readonly projectId: string;
  readonly userId?: string | undefined;
  /** `open` = pending and active. */
  readonly state?: 'pending' | 'active' | 'open' | 'ended' | undefined;
  /** Only leases that overlap with this time, in microseconds of the epoch. */
  readonly from?: bigint | undefined;
  readonly until?: bigint | undefined;
}

export interface LeaseRowView {
  /** The row of the ledger. */
  readonly row: bigint;
  readonly leaseId: string | null;
  readonly region: string;
  readonly projectId: string;
  readonly userId: string;
  readonly name: string;
  /** Microseconds of the epoch, as all times here. `end`: the real one, if it ended earlier. */
  readonly start: bigint;
  readonly end: bigint;
  readonly state: 'pending' | 'active' | 'ended';
  readonly recordedAt: bigint;
  /** What it takes from budgets of the project, as a budget counts (`Amount`); the dearest it may be. */
  readonly cost: Amount;
  /** Resource type → how many were asked for. */
  readonly resources: ReadonlyMap<string, number>;
}

/** The newest first. @throws LedgerUnavailableError, CursorError */
export function listProjectLeases(
  _ledger: Ledger,
  _query: LeasesQuery,
  _wait: Wait,
): Promise<PageOf<LeaseRowView>> {
  throw new Error('not built yet');
}
