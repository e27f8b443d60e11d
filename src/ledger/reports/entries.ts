/** Entries of the ledger, in pages: every change of a balance, with author, time and reason. */
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { rows, type Work } from '../storage/database.ts';
import { isAmong } from '../storage/query-parts.ts';
import {
  cursorOf,
  numberIn,
  type PageOf,
  type PageQuery,
  type Piece,
  reading,
  SCANNED,
  scanned,
} from './pages.ts';
import type { EntryReport } from './reports.ts';

interface EntriesQuery extends PageQuery {
  readonly projectId?: string | undefined;
  readonly account?: string | undefined;
  /** The id in Blazar. */
  readonly leaseId?: string | undefined;
  /** The row of a lease. */
  readonly lease?: bigint | undefined;
  readonly operation?: string | undefined;
  readonly requestId?: string | undefined;
  /** Microseconds of the epoch: from `since` on, before `until`. */
  readonly since?: bigint | undefined;
  readonly until?: bigint | undefined;
}

/** An entry with the id of its lease in Blazar. */
export interface EntryView extends EntryReport {
  readonly leaseId: string | null;
  readonly userId: string;
}

/**
 * Newest first. Only `next` shows whether there are more: a page may be shorter than `limit`, or empty, if
 * few of many entries match. Entries of a lease or a project are found by an index.
 * @throws LedgerUnavailableError, CursorError
 */
export async function listEntries(
  ledger: Ledger,
  query: EntriesQuery,
  wait: Wait,
): Promise<PageOf<EntryView>> {
  const read = reading(ledger, wait);
  const { items, next } = await scanned(
    query.limit,
    numberIn(query.after),
    (last, wanted) => read(() => piece(ledger, query, last, wanted)),
    ({ id }) => id,
  );
  return { items, next: next === undefined ? undefined : cursorOf([next]) };
}

/** `lowest`: the last entry that was read; `undefined` = no more entries. */
function* piece(
  { database: { queries, dialect } }: Ledger,
  query: EntriesQuery,
  before: bigint | undefined,
  wanted: number,
): Work<Piece<EntryView>> {
  const { projectId, leaseId, lease } = query;
  let looked = queries.selectFrom('entries').select('id');
  if (lease !== undefined) {
    looked = looked.where('lease', '=', lease);
  } else if (projectId !== undefined && leaseId === undefined) {
    looked = looked.where('project_id', '=', projectId);
  }
  // Without the project: with it, SQLite scans all entries of the project.
  if (leaseId !== undefined) {
    looked = looked.where(
      'lease',
      'in',
      queries.selectFrom('leases').select('id').where('lease_id', '=', leaseId),
    );
  }
  if (before !== undefined) {
    looked = looked.where('id', '<', before);
  }
  const isFiltered =
    leaseId !== undefined ||
    [query.account, query.operation, query.requestId, query.since, query.until].some(
      (one) => one !== undefined,
    );
  const size = isFiltered ? SCANNED : wanted + 1;
  const ids = (yield* rows(looked.orderBy('id', 'desc').limit(size).compile())).map(({ id }) => id);
  let found = queries
    .selectFrom('entries')
    .innerJoin('leases', 'leases.id', 'entries.lease')
    .selectAll('entries')
    .select(['leases.lease_id as leaseId', 'leases.user_id as userId'])
    .where(isAmong(dialect, 'entries.id', ids));
  const equal = {
    'entries.project_id': projectId,
    'leases.lease_id': leaseId,
    'entries.account': query.account,
    'entries.operation': query.operation,
    'entries.request_id': query.requestId,
  } as const;
  for (const [column, value] of Object.entries(equal)) {
    if (value !== undefined) {
      found = found.where(column as keyof typeof equal, '=', value);
    }
  }
  if (query.since !== undefined) {
    found = found.where('entries.at', '>=', query.since);
  }
  if (query.until !== undefined) {
    found = found.where('entries.at', '<', query.until);
  }
  const matching = yield* rows(
    found
      .orderBy('entries.id', 'desc')
      .limit(wanted + 1)
      .compile(),
  );
  return { found: matching, lowest: ids.length < size ? undefined : ids.at(-1) };
}
