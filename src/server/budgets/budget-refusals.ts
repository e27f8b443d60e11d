/** Why a budget was not changed, in words for the person who wanted it. */
import { formatUnitHours } from '../../filter/amount.ts';
import type { Budget } from '../../filter/budget.ts';
import { formatInstant, MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { BeyondProject, BudgetRefusal } from '../../ledger/budgets/edits.ts';
import { overlapText } from '../../ledger/budgets/format.ts';
import { ApiError } from '../api/route.ts';

/** Of a budget, strong: another one after each change. */
export function budgetEtag({ version }: { readonly version: string }): string {
  return `"${version}"`;
}

export function budgetPath({ id }: Pick<Budget, 'id'>): string {
  return `/v1/budgets/${id}`;
}

export function noBudget(): ApiError {
  return new ApiError(404, 'there is no such budget, or it was removed');
}

export function refusalError(refusal: BudgetRefusal, unit: string): ApiError {
  switch (refusal.kind) {
    case 'gone':
      return noBudget();
    case 'overlaps':
      return new ApiError(409, overlapText(refusal.other), {
        field: 'valid_from',
        headers: { Location: budgetPath(refusal.other) },
      });
    case 'changed':
      return new ApiError(
        412,
        `${refusal.current.changedBy} has changed the budget since; read it again, then decide`,
        { field: 'If-Match', headers: { ETag: budgetEtag(refusal.current) } },
      );
    case 'empty':
      return new ApiError(422, `expected a date after the start, ${second(refusal.validFrom)}`, {
        field: 'valid_until',
      });
    case 'beyond-project':
      return beyondError(refusal.beyond, unit);
  }
}

function beyondError(beyond: BeyondProject, unit: string): ApiError {
  return beyond.kind === 'uncovered'
    ? new ApiError(
        422,
        `expected a time within the budgets of the project, which has none from ${second(beyond.from)} until ${second(beyond.until)}`,
        { field: 'valid_until' },
      )
    : new ApiError(
        422,
        `expected at most what the project has in that time: ${formatUnitHours(beyond.most, 'down')} ${unit}`,
        { field: 'amount' },
      );
}

function second(value: bigint): string {
  return formatInstant(value * MICROSECONDS_PER_SECOND);
}
