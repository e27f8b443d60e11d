/**
 * The history of budgets, in pages: every change, with author, time and reason; and the open leases that are
 * charged to them.
 */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { keyOf, numberIn, type PageOf, type PageQuery, pageOf, reading } from '../reports/pages.ts';
import { type LeaseReport, reportOf } from '../reports/reports.ts';
import { rows } from '../storage/database.ts';
import { isAmong } from '../storage/query-parts.ts';
import { type BudgetChange, changeOf } from './rows.ts';

export interface BudgetChangesQuery extends PageQuery {
  /** Only these projects; `undefined` = all. */
  readonly projectIds?: readonly string[] | undefined;
  readonly userId?: string | undefined;
  readonly budget?: bigint | undefined;
  /** Default: newest first. */
  readonly order?: 'newest' | 'oldest' | undefined;
}

/** @throws LedgerUnavailableError, CursorError */
export async function pageOfBudgetChanges(
  ledger: Ledger,
  { limit, after, projectIds, userId, budget, order = 'newest' }: BudgetChangesQuery,
  wait: Wait,
): Promise<PageOf<BudgetChange>> {
  const last = numberIn(after);
  if (projectIds?.length === 0) {
    return { items: [], next: undefined };
  }
  let query = ledger.database.queries.selectFrom('budget_changes').selectAll();
  if (projectIds !== undefined) {
    query = query.where(isAmong(ledger.database.dialect, 'project_id', projectIds));
  }
  if (userId !== undefined) {
    query = query.where('user_id', '=', userId);
  }
  if (budget !== undefined) {
    query = query.where('budget', '=', budget);
  }
  if (last !== undefined) {
    query = query.where('id', order === 'newest' ? '<' : '>', last);
  }
  const page = query.orderBy('id', order === 'newest' ? 'desc' : 'asc').limit(limit + 1);
  const found = await reading(ledger, wait)(() => rows(page.compile()));
  return pageOf(found.map(changeOf), limit, ({ id }) => [id]);
}

/** For a command that prints all. */
export const UNLIMITED = 1_000_000_000;

/** Every change, oldest first. `projectId`: `undefined` = all projects. @throws LedgerUnavailableError */
export async function budgetHistory(
  ledger: Ledger,
  projectId: string | undefined,
  wait: Wait,
): Promise<BudgetChange[]> {
  const projectIds = projectId === undefined ? undefined : [projectId];
  const query = { projectIds, order: 'oldest', limit: UNLIMITED, after: undefined } as const;
  return [...(await pageOfBudgetChanges(ledger, query, wait)).items];
}

/**
 * The open leases of a project that are charged for time, sorted by end. A page may be shorter than its
 * limit, or empty, and still have a next page. @throws LedgerUnavailableError, CursorError
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
  const { items, next } = pageOf(found, limit, ({ ends_at, id }) => [ends_at, id]);
  const charged = items
    .map((row) => reportOf(row, now))
    .filter(({ claims, unconfirmed }) =>
      [claims, ...unconfirmed].flat().some(({ kind }) => kind === 'usage'),
    );
  return { items: charged, next };
}
