/** The steps that transactions on budgets have in common. The project must be locked. */
import type { Budget } from '../../filter/budget.ts';
import type { Ledger } from '../ledger.ts';
import { rows, type Work } from '../storage/database.ts';
import { type BudgetChange, budgetId, termsOf } from './rows.ts';

/** A budget to set. It replaces one of the same owner that starts at the same second. */
export type WantedBudget = Omit<Budget, 'id'>;

export interface BudgetAuthor {
  readonly who: string;
  readonly reason: string | null;
}

/** One of the owner's budgets that would overlap, other than the one that starts at the same second. */
export function otherOverlapping(wanted: WantedBudget, ofOwner: readonly Budget[]): Budget | undefined {
  return ofOwner.find(
    ({ validFrom, validUntil }) =>
      validFrom !== wanted.validFrom && validFrom < wanted.validUntil && wanted.validFrom < validUntil,
  );
}

/** Writes a budget and its change. One that was removed comes back with its id, and with what leases were charged before. */
export function* writeBudget(ledger: Ledger, wanted: WantedBudget, author: BudgetAuthor): Work<Budget> {
  const { queries } = ledger.database;
  const { crossings } = ledger.statements;
  let id = yield* budgetId(queries, wanted);
  const before = crossings && id !== undefined ? yield* crossings.amountOf(id) : undefined;
  if (id === undefined) {
    const values = { ...termsOf(wanted), removed_at: null };
    const [added] = yield* rows(queries.insertInto('budgets').values(values).returning('id').compile());
    id = added?.id ?? 0n;
  } else {
    const changed = { valid_until: wanted.validUntil, amount: wanted.amount, removed_at: null };
    yield* rows(queries.updateTable('budgets').set(changed).where('id', '=', id).compile());
  }
  const budget = { ...wanted, id };
  yield* addChange(ledger, budget, 'set', author);
  if (crossings !== undefined) {
    yield* crossings.budgetSet(budget, before, author.who);
  }
  return budget;
}

/** Removes a budget in force. What was charged to it stays charged. */
export function* eraseBudget(ledger: Ledger, budget: Budget, author: BudgetAuthor): Work<void> {
  const removed = ledger.database.queries
    .updateTable('budgets')
    .set({ removed_at: ledger.now() })
    .where('id', '=', budget.id);
  yield* rows(removed.compile());
  yield* addChange(ledger, budget, 'removed', author);
}

function* addChange(
  ledger: Ledger,
  budget: Budget,
  operation: BudgetChange['operation'],
  { who, reason }: BudgetAuthor,
): Work<void> {
  const change = { at: ledger.now(), budget: budget.id, operation, ...termsOf(budget), who, reason };
  yield* rows(ledger.database.queries.insertInto('budget_changes').values(change).compile());
}
