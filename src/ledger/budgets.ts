/** Budgets: who sets them, which there are, what is left of them, and how they came about. */
import type { Wait } from '../deadline.ts';
import type { Amount } from '../filter/amount.ts';
import { type Budget, budgetAccount } from '../filter/budget.ts';
import { budgetOf } from './budget-row.ts';
import { rows, Undone, type Work } from './database.ts';
import type { Ledger } from './ledger.ts';
import type { Turn } from './turn.ts';

/** A budget as somebody wants it. One of the same owner that begins at the same second is changed. */
export type WantedBudget = Omit<Budget, 'id'>;

export interface BudgetAuthor {
  readonly who: string;
  readonly reason: string | null;
}

/** The budget can't be had: it would overlap with another one of the same owner. */
export class BudgetConflictError extends Error {
  override readonly name = 'BudgetConflictError';
  readonly other: Budget;

  constructor(other: Budget) {
    super('it would overlap with another budget');
    this.other = other;
  }
}

/** A budget with what leases have taken of it. */
export interface BudgetStanding extends Budget {
  /** What is used, and what leases will use. */
  readonly taken: Amount;
  /** 0 or less: a budget may have been made smaller than what was taken. */
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

/** Resolves to `undefined` where there is none that begins then. What was charged to it stays charged. @throws LedgerUnavailableError */
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

/** Those that count, by project, user and time. `undefined` = of all projects. @throws LedgerUnavailableError */
export function listBudgets(
  ledger: Ledger,
  projectId: string | undefined,
  wait: Wait,
): Promise<BudgetStanding[]> {
  return ledger.read('read', () => list(ledger, projectId), wait);
}

/** The oldest change first. @throws LedgerUnavailableError */
export function budgetHistory(
  ledger: Ledger,
  projectId: string | undefined,
  wait: Wait,
): Promise<BudgetChange[]> {
  return ledger.read('read', () => history(ledger, projectId), wait);
}

function* set(ledger: Ledger, turn: Turn, wanted: WantedBudget, author: BudgetAuthor): Work<Budget> {
  const {
    projectId: project_id,
    userId: user_id,
    validFrom: valid_from,
    validUntil: valid_until,
    amount,
  } = wanted;
  const { queries } = ledger.database;
  yield* turn.lock(project_id);
  const others = (yield* ofOwner(ledger, wanted)).filter(({ validFrom }) => validFrom !== valid_from);
  const other = others.find(
    ({ validFrom, validUntil }) => validFrom < valid_until && valid_from < validUntil,
  );
  if (other !== undefined) {
    throw new BudgetConflictError(other);
  }
  let id = yield* knownId(ledger, wanted);
  if (id === undefined) {
    const values = { project_id, user_id, valid_from, valid_until, amount, removed_at: null };
    const [added] = yield* rows(queries.insertInto('budgets').values(values).returning('id').compile());
    id = added?.id ?? 0n;
  } else {
    const changed = { valid_until, amount, removed_at: null };
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
  yield* turn.lock(which.projectId);
  const budget = (yield* ofOwner(ledger, which)).find(({ validFrom }) => validFrom === which.validFrom);
  if (budget === undefined) {
    return new Undone(undefined);
  }
  const { queries } = ledger.database;
  const removed = queries
    .updateTable('budgets')
    .set({ removed_at: ledger.now() })
    .where('id', '=', budget.id);
  yield* rows(removed.compile());
  yield* addChange(ledger, budget, 'removed', author);
  return budget;
}

function* ofOwner(
  ledger: Ledger,
  { projectId, userId }: Pick<Budget, 'projectId' | 'userId'>,
): Work<Budget[]> {
  const query = ledger.database.queries
    .selectFrom('budgets')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('user_id', userId === null ? 'is' : '=', userId)
    .where('removed_at', 'is', null);
  return (yield* rows(query.compile())).map(budgetOf);
}

/** Of a budget that was removed, too: what leases were charged for this time is not forgotten when it is set again. */
function* knownId(ledger: Ledger, { projectId, userId, validFrom }: WantedBudget): Work<bigint | undefined> {
  const query = ledger.database.queries
    .selectFrom('budgets')
    .select('id')
    .where('project_id', '=', projectId)
    .where('user_id', userId === null ? 'is' : '=', userId)
    .where('valid_from', '=', validFrom);
  const [known] = yield* rows(query.compile());
  return known?.id;
}

function* addChange(
  ledger: Ledger,
  {
    id: budget,
    projectId: project_id,
    userId: user_id,
    validFrom: valid_from,
    validUntil: valid_until,
    amount,
  }: Budget,
  operation: BudgetChange['operation'],
  { who, reason }: BudgetAuthor,
): Work<void> {
  const change = {
    at: ledger.now(),
    budget,
    project_id,
    user_id,
    operation,
    valid_from,
    valid_until,
    amount,
    who,
    reason,
  };
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
