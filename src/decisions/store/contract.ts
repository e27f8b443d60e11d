/** Decisions in the ledger's database, for all replicas to see: types only. */
import type { Wait } from '../../deadline.ts';
import type { PageOf, PageQuery } from '../../ledger/views/pages.ts';
import type { AskedTime } from '../recent.ts';
import type { DecisionRecord } from '../record.ts';
import type { Selection } from '../selection.ts';

/** `Selection`: projects, users, filters, outcomes, operations, since, until. All are combined by "and". */
export interface DecisionsQuery extends Selection, PageQuery {
  /** Only of these projects, whatever else is asked; `undefined` = of all. */
  readonly visible?: readonly string[] | undefined;
  readonly leaseId?: string | undefined;
  readonly requestId?: string | undefined;
}

export interface StoredDecision {
  /** Rises, so that a reader can ask for what is newer. Only unique within one ledger. */
  readonly id: bigint;
  readonly record: DecisionRecord;
  /** The dates of the lease; `undefined` = allowed, or not a lease. */
  readonly asked: AskedTime | undefined;
  /** The replica that decided. */
  readonly replica: string;
}

export interface DecisionSource {
  /** The newest first. Throws `LedgerUnavailableError`, `CursorError`. */
  search(query: DecisionsQuery, wait: Wait): Promise<PageOf<StoredDecision>>;
  /** The id of the newest decision; 0 = there is none. Cheap: it is asked every few seconds while somebody looks. */
  newest(wait: Wait): Promise<bigint>;
}
