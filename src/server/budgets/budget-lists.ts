/** Lists of budgets and their changes, limited to what a caller may see. */
import type { Wait } from '../../base/deadline.ts';
import { budgetUnit } from '../../enforcement/configuration.ts';
import type { BudgetChange } from '../../ledger/budgets/budgets.ts';
import type { BudgetChangesQuery } from '../../ledger/budgets/history.ts';
import {
  type BudgetsQuery,
  type BudgetView,
  type ExportFormat,
  exportedBudgets,
} from '../../ledger/budgets/view.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { PageOf, PageQuery } from '../../ledger/reports/pages.ts';
import { visibleProjects } from '../users/caller.ts';
import { ledgerFor, listedId, listedUser, ownProject, type Requester } from './named-accounts.ts';

/** Projects and users by id, or by `name@domain`. */
export interface Filters extends PageQuery {
  readonly projectId?: string | undefined;
  readonly userId?: string | undefined;
}

/** @throws ApiError 422 for a name that Keystone does not have, LedgerUnavailableError, CursorError */
export async function budgetsFor(
  requester: Requester,
  query: Filters & Pick<BudgetsQuery, 'validAt' | 'search'>,
): Promise<PageOf<BudgetView>> {
  const { pageOfBudgets } = await import('../../ledger/budgets/view.ts');
  return narrowed(requester, query, pageOfBudgets);
}

/** @throws ApiError 422 for a name that Keystone does not have, LedgerUnavailableError, CursorError */
export async function budgetChangesFor(
  requester: Requester,
  query: Filters & Pick<BudgetChangesQuery, 'budget' | 'order'>,
): Promise<PageOf<BudgetChange>> {
  const { pageOfBudgetChanges } = await import('../../ledger/budgets/history.ts');
  return narrowed(requester, query, pageOfBudgetChanges);
}

/** A page of the part of a list that the caller may see. */
export async function narrowed<Query extends Filters, Item>(
  requester: Requester,
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
  const ledger = await ledgerFor(requester);
  const { projectId, userId, ...rest } = query;
  const projectIds = await projectsAsked(requester, projectId);
  const user = userId === undefined ? undefined : await listedUser(requester, userId);
  return page(ledger, { ...rest, projectIds, userId: user }, requester.deadline);
}

/**
 * The projects of a list; `undefined` = all. Members see only their own projects. Names in their requests are
 * not looked up in Keystone, so that they learn nothing about other projects.
 *
 * @throws ApiError 422 for a name that Keystone does not have
 */
export async function projectsAsked(
  requester: Requester,
  projectId: string | undefined,
): Promise<readonly string[] | undefined> {
  const visible = visibleProjects(requester.caller);
  if (projectId === undefined) {
    return visible;
  }
  if (visible === undefined) {
    return [await listedId(requester, 'project', projectId)];
  }
  const own = ownProject(requester.caller, projectId);
  return own === undefined ? [] : [own];
}

/** All budgets that a caller may see. @throws ApiError 404, LedgerUnavailableError */
export async function exportFor(
  requester: Requester,
  format: ExportFormat,
  query: Pick<BudgetsQuery, 'projectIds' | 'validAt'>,
): Promise<AsyncIterable<string>> {
  const ledger = await ledgerFor(requester);
  const projectIds = query.projectIds ?? visibleProjects(requester.caller);
  return exportedBudgets(
    ledger,
    format,
    { ...query, projectIds },
    budgetUnit(requester.generation.configuration),
  );
}
