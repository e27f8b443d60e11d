/** Budgets as rows of the tables. */
import type { Kysely } from 'kysely';
import type { Budget } from '../../filter/claim.ts';
import { rows, type Work } from '../storage/database.ts';
import type { BudgetChangesTable, BudgetsTable, Tables } from '../storage/schema.ts';

export interface BudgetChange extends Omit<Budget, 'id'> {
  /** Increases with each change. */
  readonly id: bigint;
  readonly budget: bigint;
  /** Microseconds of the epoch. */
  readonly at: bigint;
  readonly operation: 'set' | 'removed';
  readonly who: string;
  readonly reason: string | null;
}

/** The columns of `budgets` and of `budget_changes` that say what a budget is. */
export type TermsRow = Pick<BudgetsTable, 'project_id' | 'user_id' | 'valid_from' | 'valid_until' | 'amount'>;

export function budgetOf(row: TermsRow & { readonly id: bigint }): Budget {
  return {
    id: row.id,
    projectId: row.project_id,
    userId: row.user_id,
    validFrom: row.valid_from,
    validUntil: row.valid_until,
    amount: row.amount,
  };
}

/** The terms of a budget as columns of `budgets` and `budget_changes`. */
export function termsOf({ projectId, userId, validFrom, validUntil, amount }: Omit<Budget, 'id'>) {
  return {
    project_id: projectId,
    user_id: userId,
    valid_from: validFrom,
    valid_until: validUntil,
    amount,
  };
}

export function* budgetsOfOwner(
  queries: Kysely<Tables>,
  { projectId, userId }: Pick<Budget, 'projectId' | 'userId'>,
): Work<Budget[]> {
  const query = queries
    .selectFrom('budgets')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('user_id', userId === null ? 'is' : '=', userId)
    .where('removed_at', 'is', null);
  return (yield* rows(query.compile())).map(budgetOf);
}

/** The id of a budget, even if it was removed: when it is set again, earlier charges still count. */
export function* budgetId(
  queries: Kysely<Tables>,
  { projectId, userId, validFrom }: Pick<Budget, 'projectId' | 'userId' | 'validFrom'>,
): Work<bigint | undefined> {
  const query = queries
    .selectFrom('budgets')
    .select('id')
    .where('project_id', '=', projectId)
    .where('user_id', userId === null ? 'is' : '=', userId)
    .where('valid_from', '=', validFrom);
  const [known] = yield* rows(query.compile());
  return known?.id;
}

export function changeOf(row: Omit<BudgetChangesTable, 'id'> & { readonly id: bigint }): BudgetChange {
  const { at, budget, operation, who, reason } = row;
  return { ...budgetOf(row), at, budget, operation, who, reason };
}
