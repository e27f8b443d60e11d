/** All budgets that a person may see, as CSV or JSON, page by page: a slow reader holds no connection of the ledger. */
import { budgetUnit } from '../../enforcement/budget-unit.ts';
import { budgetCsv } from '../../ledger/budget-csv.ts';
import { exportedBudget } from '../../ledger/budget-texts.ts';
import { type BudgetsQuery, pageOfBudgets } from '../../ledger/budget-view.ts';
import { visibleProjects } from '../people/access.ts';
import { type Asker, ledgerFor } from './asker.ts';

export type ExportFormat = 'csv' | 'json';

const PAGE = 1000;

/** The first part is read before it resolves, so that a ledger that does not answer is told. @throws ApiError, LedgerUnavailableError */
export async function exportFor(
  asker: Asker,
  format: ExportFormat,
  query: Pick<BudgetsQuery, 'projectIds' | 'validAt'>,
): Promise<AsyncIterable<string>> {
  const ledger = await ledgerFor(asker);
  const unit = budgetUnit(asker.generation.configuration);
  const projectIds = query.projectIds ?? visibleProjects(asker.person);
  const read = (after: string | undefined) =>
    // The deadline is that of the answer's beginning: [ledger] timeout bounds each page.
    pageOfBudgets(ledger, { ...query, projectIds, limit: PAGE, after }, UNTIL_TIMEOUT);
  const first = await read(undefined);
  return (async function* () {
    let page: typeof first | undefined = first;
    let isFirst = true;
    if (format === 'json') {
      yield `{"unit":${JSON.stringify(unit)},"budgets":[`;
    }
    while (page !== undefined) {
      const items: ReturnType<typeof exportedBudget>[] = page.items.map(exportedBudget);
      if (format === 'csv') {
        yield await budgetCsv(items, isFirst);
      } else if (items.length > 0) {
        yield `${isFirst ? '' : ','}\n${items.map((item) => JSON.stringify({ ...item, user_id: item.user_id || null })).join(',\n')}`;
      }
      isFirst = false;
      page = page.next === undefined ? undefined : await read(page.next);
    }
    if (format === 'json') {
      yield '\n]}\n';
    }
  })();
}

const UNTIL_TIMEOUT = { signal: undefined, throwIfOver() {} };
