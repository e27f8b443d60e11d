/** Which open leases are charged to budgets, in pages. */
import { sql } from 'kysely';
import type { Wait } from '../../deadline.ts';
import { rows } from '../database/database.ts';
import type { Ledger } from '../ledger.ts';
import { cursorOf, keyOf, type PageOf, type PageQuery } from '../views/pages.ts';
import { reading } from '../views/reading.ts';
import { type LeaseReport, reportOf } from '../views/reports.ts';

/**
 * The open leases of a project that are charged for time, sorted by end. A page may have fewer than its limit, even none, and yet be followed by
 * another. @throws LedgerUnavailableError, CursorError
 */
export async function pageOfChargedLeases(
  ledger: Ledger,
  { projectId, limit, after }: PageQuery & { readonly projectId: string },
  wait: Wait,
): Promise<PageOf<LeaseReport>> {
  const key = after === undefined ? undefined : keyOf(after, ['number', 'number']);
  const now = ledger.now();
  let query = ledger.database.queries
    .selectFrom('leases')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('state', '=', 'open')
    .where('ends_at', '>', now);
  if (key !== undefined) {
    query = query.where(sql<boolean>`(ends_at, id) > (${key[0]}, ${key[1]})`);
  }
  const page = query
    .orderBy('ends_at')
    .orderBy('id')
    .limit(limit + 1);
  const found = await reading(ledger, wait)(() => rows(page.compile()));
  const last = found.length > limit ? found[limit - 1] : undefined;
  return {
    items: found
      .slice(0, limit)
      .map((row) => reportOf(row, now))
      .filter(({ claims, unconfirmed }) =>
        [claims, ...unconfirmed].flat().some(({ kind }) => kind === 'usage'),
      ),
    next: last && cursorOf([last.ends_at, last.id]),
  };
}
