/** Requests for more budget: one, or all in pages; and whether their table exists. */
import type { Wait } from '../../../base/deadline.ts';
import type { Ledger } from '../../ledger.ts';
import { numberIn, type PageOf, type PageQuery, pageOf, reading } from '../../reports/pages.ts';
import { rows } from '../../storage/database.ts';
import { isAmong } from '../../storage/query-parts.ts';
import { NEEDED_FOR_REQUESTS } from '../../storage/rights.ts';
import type { BudgetRequestState } from '../../storage/service-tables.ts';
import { requireTables } from '../../tables.ts';
import { type BudgetRequest, requestIn, requestOf } from './rows.ts';

/** `undefined` = unknown id. @throws LedgerUnavailableError, ConfigurationError */
export async function requestById(
  ledger: Ledger,
  id: bigint,
  wait: Wait,
): Promise<BudgetRequest | undefined> {
  await requireRequests(ledger, wait);
  return ledger.read('read', () => requestIn(ledger.database.queries, id), wait);
}

export interface RequestsQuery extends PageQuery {
  /** Only these projects; `undefined` = all. */
  readonly projectIds?: readonly string[] | undefined;
  readonly userId?: string | undefined;
  /** Only these states; `undefined` = all. */
  readonly states?: readonly BudgetRequestState[] | undefined;
}

/** Newest first. @throws LedgerUnavailableError, ConfigurationError, CursorError */
export async function pageOfRequests(
  ledger: Ledger,
  { limit, after, projectIds, userId, states }: RequestsQuery,
  wait: Wait,
): Promise<PageOf<BudgetRequest>> {
  const last = numberIn(after);
  if (projectIds?.length === 0) {
    return { items: [], next: undefined };
  }
  await requireRequests(ledger, wait);
  let query = ledger.database.queries.selectFrom('budget_requests').selectAll();
  if (projectIds !== undefined) {
    query = query.where(isAmong(ledger.database.dialect, 'project_id', projectIds));
  }
  if (userId !== undefined) {
    query = query.where('user_id', '=', userId);
  }
  if (states !== undefined) {
    query = query.where('state', 'in', states);
  }
  if (last !== undefined) {
    query = query.where('id', '<', last);
  }
  const page = query.orderBy('id', 'desc').limit(limit + 1);
  const found = await reading(ledger, wait)(() => rows(page.compile()));
  return pageOf(found.map(requestOf), limit, ({ id }) => [id]);
}

export const REQUESTS = { migration: '0012-budget-requests', needed: NEEDED_FOR_REQUESTS };

/**
 * Leases do not need the table: it may be missing, or the role may have no access to it.
 * @throws LedgerUnavailableError, ConfigurationError
 */
export function requireRequests(ledger: Ledger, wait: Wait): Promise<void> {
  return requireTables(ledger, REQUESTS, wait);
}
