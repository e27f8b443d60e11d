/** Budgets: setting and removing them, what is left of them, and their history. */
import type { Wait } from '../deadline.ts';
import type { Amount } from '../filter/amount.ts';
import { type Budget, budgetAccount } from '../filter/budget.ts';
import { budgetId, budgetOf, budgetsOfOwner, termsOf } from './budget-rows.ts';
import { rows, Undone, type Work } from './database.ts';
import type { Ledger } from './ledger.ts';
import type { Turn } from './turn.ts';

/** A budget to set. It replaces one of the same owner that starts at the same second. */
export type WantedBudget = Omit<Budget, 'id'>;

export interface BudgetAuthor {
  readonly who: string;
  readonly reason: string | null;
}

/** The budget would overlap with another one of the same owner. */
export class BudgetConflictError extends Error {
  override readonly name = 'BudgetConflictError';
  readonly other: Budget;

  constructor(other: Budget) {
    super('it would overlap with another budget');
    this.other = other;
  }
}

/** A budget, and how much of it is taken. */
export interface BudgetStanding extends Budget {
  /** What leases have used, and what they are still to use. */
  readonly taken: Amount;
  /** Less than 0 when the budget was made smaller than what was already taken. */
  readonly left: Amount;
}

export interface BudgetChange extends Omit<Budget, 'id'> {
  readonly budget: bigint;
  /** Microseconds of the epoch. */
  readonly at: bigint;
  readonly operation: 'set' | 'removed';
  readonly who: string;
  readonly reason: string | null;
}

/** @throws BudgetConflictError, LedgerUnavailableError */
export function setBudget(
  ledger: Ledger,
  wanted: WantedBudget,
  author: BudgetAuthor,
  wait: Wait,
): Promise<Budget> {
  return ledger.transact('budget', (turn) => set(ledger, turn, wanted, author), wait, {
    project: wanted.projectId,
  });
}

/** Resolves to `undefined` when no budget starts then. What was charged to it stays charged. @throws LedgerUnavailableError */
export function removeBudget(
  ledger: Ledger,
  which: Pick<Budget, 'projectId' | 'userId' | 'validFrom'>,
  author: BudgetAuthor,
  wait: Wait,
): Promise<Budget | undefined> {
  return ledger.transact('budget', (turn) => remove(ledger, turn, which, author), wait, {
    project: which.projectId,
  });
}

/** The budgets in force, sorted by project, user and time. `undefined` = of all projects. @throws LedgerUnavailableError */
export function listBudgets(
  ledger: Ledger,
  projectId: string | undefined,
  wait: Wait,
): Promise<BudgetStanding[]> {
  return ledger.read('read', () => list(ledger, projectId), wait);
}

/** Every change, oldest first. `undefined` = of all projects. @throws LedgerUnavailableError */
export function budgetHistory(
  ledger: Ledger,
  projectId: string | undefined,
  wait: Wait,
): Promise<BudgetChange[]> {
  return ledger.read('read', () => history(ledger, projectId), wait);
}

function* set(ledger: Ledger, turn: Turn, wanted: WantedBudget, author: BudgetAuthor): Work<Budget> {
  const { queries } = ledger.database;
  yield* turn.lock(wanted.projectId);
  const other = (yield* budgetsOfOwner(queries, wanted)).find(
    ({ validFrom, validUntil }) =>
      validFrom !== wanted.validFrom && validFrom < wanted.validUntil && wanted.validFrom < validUntil,
  );
  if (other !== undefined) {
    throw new BudgetConflictError(other);
  }
  let id = yield* budgetId(queries, wanted);
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
  return budget;
}

function* remove(
  ledger: Ledger,
  turn: Turn,
  which: Pick<Budget, 'projectId' | 'userId' | 'validFrom'>,
  author: BudgetAuthor,
): Work<Budget | undefined | Undone<undefined>> {
  const { queries } = ledger.database;
  yield* turn.lock(which.projectId);
  const budget = (yield* budgetsOfOwner(queries, which)).find(
    ({ validFrom }) => validFrom === which.validFrom,
  );
  if (budget === undefined) {
    return new Undone(undefined);
  }
  const removed = queries
    .updateTable('budgets')
    .set({ removed_at: ledger.now() })
    .where('id', '=', budget.id);
  yield* rows(removed.compile());
  yield* addChange(ledger, budget, 'removed', author);
  return budget;
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

function* list(ledger: Ledger, projectId: string | undefined): Work<BudgetStanding[]> {
  const { queries } = ledger.database;
  let query = queries.selectFrom('budgets').selectAll().where('removed_at', 'is', null);
  let balances = queries.selectFrom('accounts').selectAll().where('name', 'like', 'usage_budget/%');
  if (projectId !== undefined) {
    query = query.where('project_id', '=', projectId);
    balances = balances.where('project_id', '=', projectId);
  }
  const budgets = yield* rows(
    query
      .orderBy('project_id')
      .orderBy('user_id', (order) => order.asc().nullsFirst())
      .orderBy('valid_from')
      .compile(),
  );
  const taken = new Map((yield* rows(balances.compile())).map(({ name, balance }) => [name, balance]));
  return budgets.map((row) => {
    const budget = budgetOf(row);
    const balance = taken.get(budgetAccount(budget)) ?? 0n;
    return { ...budget, taken: balance, left: budget.amount - balance };
  });
}

function* history(ledger: Ledger, projectId: string | undefined): Work<BudgetChange[]> {
  let query = ledger.database.queries.selectFrom('budget_changes').selectAll();
  if (projectId !== undefined) {
    query = query.where('project_id', '=', projectId);
  }
  return (yield* rows(query.orderBy('id').compile())).map((row) => ({
    at: row.at,
    budget: row.budget,
    projectId: row.project_id,
    userId: row.user_id,
    operation: row.operation,
    validFrom: row.valid_from,
    validUntil: row.valid_until,
    amount: row.amount,
    who: row.who,
    reason: row.reason,
  }));
}
