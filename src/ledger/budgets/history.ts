/** Every change of budgets, in pages: who, when and why. */
import { sql } from 'kysely';
import type { Wait } from '../../deadline.ts';
import { rows } from '../database/database.ts';
import type { Ledger } from '../ledger.ts';
import { textsTable } from '../views/many.ts';
import { cursorOf, keyOf, type PageOf, type PageQuery } from '../views/pages.ts';
import { reading } from '../views/reading.ts';
import { type BudgetChange, changeOf } from './rows.ts';

export interface BudgetChangesQuery extends PageQuery {
  /** Only of these projects; `undefined` = of all. */
  readonly projectIds?: readonly string[] | undefined;
  readonly userId?: string | undefined;
  readonly budget?: bigint | undefined;
  /** Default: the newest first. */
  readonly order?: 'newest' | 'oldest' | undefined;
}

/** @throws LedgerUnavailableError, CursorError */
export async function pageOfBudgetChanges(
  ledger: Ledger,
  { limit, after, projectIds, userId, budget, order = 'newest' }: BudgetChangesQuery,
  wait: Wait,
): Promise<PageOf<BudgetChange>> {
  const [last] = after === undefined ? [] : keyOf(after, ['number']);
  if (projectIds?.length === 0) {
    return { items: [], next: undefined };
  }
  let query = ledger.database.queries.selectFrom('budget_changes').selectAll();
  if (projectIds !== undefined) {
    const listed = textsTable(ledger.database.dialect, projectIds);
    query = query.where('project_id', 'in', sql<string>`(select value from ${listed})`);
  }
  if (userId !== undefined) {
    query = query.where('user_id', '=', userId);
  }
  if (budget !== undefined) {
    query = query.where('budget', '=', budget);
  }
  if (typeof last === 'bigint') {
    query = query.where('id', order === 'newest' ? '<' : '>', last);
  }
  const page = query.orderBy('id', order === 'newest' ? 'desc' : 'asc').limit(limit + 1);
  const found = await reading(ledger, wait)(() => rows(page.compile()));
  const items = found.slice(0, limit);
  const end = found.length > limit ? items.at(-1) : undefined;
  return { items: items.map(changeOf), next: end && cursorOf([end.id]) };
}
