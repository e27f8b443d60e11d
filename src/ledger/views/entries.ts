/** Entries of the ledger, in pages: every change of a balance, by whom, when and why. */
import type { Wait } from '../../deadline.ts';
import type { Ledger } from '../ledger.ts';
import type { EntryReport } from '../reports.ts';
import type { PageOf, PageQuery } from './pages.ts';

export interface EntriesQuery extends PageQuery {
  readonly projectId?: string | undefined;
  readonly account?: string | undefined;
  /** Blazar's id. */
  readonly leaseId?: string | undefined;
  readonly operation?: string | undefined;
  readonly requestId?: string | undefined;
  /** Microseconds of the epoch: from `since` on, before `until`. */
  readonly since?: bigint | undefined;
  readonly until?: bigint | undefined;
}

/** An entry with the id of its lease, as Blazar calls it. */
export interface EntryView extends EntryReport {
  readonly leaseId: string | null;
  readonly userId: string;
}

/** The newest first. @throws LedgerUnavailableError, CursorError */
export function listEntries(_ledger: Ledger, _query: EntriesQuery, _wait: Wait): Promise<PageOf<EntryView>> {
  throw new Error('not built yet');
}
