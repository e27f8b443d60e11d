/** All budgets as CSV or JSON, page by page: a slow client holds no database connection. */
import { waitFor } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { budgetCsv } from './csv.ts';
import { exportedBudget } from './terms.ts';
import { type BudgetsQuery, pageOfBudgets } from './view.ts';

export type ExportFormat = 'csv' | 'json';

const PAGE = 1000;
/** `[ledger] timeout` bounds each page. */
const UNTIL_TIMEOUT = waitFor(undefined);

/**
 * Resolves after the first page is read, so that an unavailable ledger is reported as an error.
 * @throws LedgerUnavailableError
 */
export async function exportedBudgets(
  ledger: Ledger,
  format: ExportFormat,
  query: Pick<BudgetsQuery, 'projectIds' | 'validAt'>,
  unit: string,
): Promise<AsyncIterable<string>> {
  const read = (after: string | undefined) =>
    pageOfBudgets(ledger, { ...query, limit: PAGE, after }, UNTIL_TIMEOUT);
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
