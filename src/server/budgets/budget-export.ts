import { budgetUnit } from '../../enforcement/budget-unit.ts';
import { type ExportFormat, exportedBudgets } from '../../ledger/budgets/export.ts';
import type { BudgetsQuery } from '../../ledger/budgets/view.ts';
import { visibleProjects } from '../users/access.ts';
import { type Asker, ledgerFor } from './asker.ts';

/** All budgets that a person may see. @throws ApiError 404, LedgerUnavailableError */
export async function exportFor(
  asker: Asker,
  format: ExportFormat,
  query: Pick<BudgetsQuery, 'projectIds' | 'validAt'>,
): Promise<AsyncIterable<string>> {
  const ledger = await ledgerFor(asker);
  const projectIds = query.projectIds ?? visibleProjects(asker.person);
  return exportedBudgets(
    ledger,
    format,
    { ...query, projectIds },
    budgetUnit(asker.generation.configuration),
  );
}
