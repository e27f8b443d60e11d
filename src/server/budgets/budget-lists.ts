/** Lists of budgets and of their changes, narrowed to what a caller may see. */
import type { Wait } from '../../base/deadline.ts';
import { budgetUnit } from '../../enforcement/budget-unit.ts';
import type { BudgetChange } from '../../ledger/budgets/budgets.ts';
import { type ExportFormat, exportedBudgets } from '../../ledger/budgets/export.ts';
import type { BudgetChangesQuery } from '../../ledger/budgets/history.ts';
import type { BudgetsQuery, BudgetView } from '../../ledger/budgets/view.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { PageOf, PageQuery } from '../../ledger/reports/pages.ts';
import { may, visibleProjects } from '../users/access.ts';
import { type Asker, accountId, ledgerFor, ownProject } from './named-accounts.ts';

/** Projects and users by id, or by `name@domain`. */
interface Filters extends PageQuery {
  readonly projectId?: string | undefined;
  readonly userId?: string | undefined;
}

/** @throws ApiError 422 for a name that Keystone does not have, LedgerUnavailableError, CursorError */
export async function budgetsFor(
  asker: Asker,
  query: Filters & Pick<BudgetsQuery, 'validAt' | 'search'>,
): Promise<PageOf<BudgetView>> {
  const { pageOfBudgets } = await import('../../ledger/budgets/view.ts');
  return narrowed(asker, query, pageOfBudgets);
}

/** @throws ApiError 422 for a name that Keystone does not have, LedgerUnavailableError, CursorError */
export async function budgetChangesFor(
  asker: Asker,
  query: Filters & Pick<BudgetChangesQuery, 'budget' | 'order'>,
): Promise<PageOf<BudgetChange>> {
  const { pageOfBudgetChanges } = await import('../../ledger/budgets/history.ts');
  return narrowed(asker, query, pageOfBudgetChanges);
}

async function narrowed<Query extends Filters, Item>(
  asker: Asker,
  query: Query,
  page: (
    ledger: Ledger,
    query: Omit<Query, 'projectId' | 'userId'> & {
      projectIds: readonly string[] | undefined;
      userId: string | undefined;
    },
    wait: Wait,
  ) => Promise<PageOf<Item>>,
): Promise<PageOf<Item>> {
  const ledger = await ledgerFor(asker);
  const { projectId, userId, ...rest } = query;
  const projectIds = await projectsAsked(asker, projectId);
  // Whoever may give a budget to a user of any name finds it again by that name.
  const mayName = visibleProjects(asker.caller) === undefined || may(asker.caller, 'set-user-budget');
  const user = userId === undefined || !mayName ? userId : await typed(asker, 'user', userId);
  return page(ledger, { ...rest, projectIds, userId: user }, asker.deadline);
}

/**
 * The projects of a list; `undefined` = all. Members see their own projects, and hear nothing about others: nobody is asked for them.
 * @throws ApiError 422 for a name that Keystone does not have
 */
export async function projectsAsked(
  asker: Asker,
  projectId: string | undefined,
): Promise<readonly string[] | undefined> {
  const visible = visibleProjects(asker.caller);
  if (projectId === undefined) {
    return visible;
  }
  if (visible === undefined) {
    return [await typed(asker, 'project', projectId)];
  }
  const own = ownProject(asker.caller, projectId);
  return own === undefined ? [] : [own];
}

/** Ids of lists may be those of accounts that are gone from Keystone: only names are looked up. */
function typed(asker: Asker, kind: 'project' | 'user', text: string): Promise<string> | string {
  return text.includes('@') ? accountId(asker, kind, text, `${kind}_id`) : text;
}

/** All budgets that a caller may see. @throws ApiError 404, LedgerUnavailableError */
export async function exportFor(
  asker: Asker,
  format: ExportFormat,
  query: Pick<BudgetsQuery, 'projectIds' | 'validAt'>,
): Promise<AsyncIterable<string>> {
  const ledger = await ledgerFor(asker);
  const projectIds = query.projectIds ?? visibleProjects(asker.caller);
  return exportedBudgets(
    ledger,
    format,
    { ...query, projectIds },
    budgetUnit(asker.generation.configuration),
  );
}
