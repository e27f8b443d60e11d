/** Budgets: setting, removing and listing them, with what is left of each. */
import type { Wait } from '../../base/deadline.ts';
import { type Amount, type Budget, budgetAccount } from '../../filter/claim.ts';
import type { Ledger } from '../ledger.ts';
import { rows, Undone, type Work } from '../storage/database.ts';
import { type BudgetChange, budgetId, budgetOf, budgetsOfOwner, termsOf } from './rows.ts';

export type { BudgetChange } from './rows.ts';

/** The budget would overlap with another one of the same owner. */
export class BudgetConflictError extends Error {
  override readonly name = 'BudgetConflictError';
  readonly other: Budget;

  constructor(other: Budget) {
    super('it would overlap with another budget');
    this.other = other;
  }
}

/** A budget and its use. */
export interface BudgetUsage extends Budget {
  /** Used and planned by leases. */
  readonly taken: Amount;
  /** Below 0 if the budget was reduced below what was already taken. */
  readonly left: Amount;
}

/** @throws BudgetConflictError, LedgerUnavailableError */
export async function setBudget(
  ledger: Ledger,
  wanted: WantedBudget,
  author: BudgetAuthor,
  wait: Wait,
): Promise<Budget> {
  const result = await ledger.transact(
    'budget',
    function* (transaction): Work<Budget | { readonly other: Budget } | Undone<{ readonly other: Budget }>> {
      // A conflict is a return value: an error would close the connection and count as a failure of the
      // ledger.
      yield* transaction.lock(wanted.projectId);
      const other = otherOverlapping(wanted, yield* budgetsOfOwner(ledger.database.queries, wanted));
      return other === undefined ? yield* writeBudget(ledger, wanted, author) : new Undone({ other });
    },
    wait,
    {
      project: wanted.projectId,
      isRefused: (one) => 'other' in one,
    },
  );
  if ('other' in result) {
    throw new BudgetConflictError(result.other);
  }
  return result;
}

/** Resolves to `undefined` if no budget starts then. Past charges stay. @throws LedgerUnavailableError */
export function removeBudget(
  ledger: Ledger,
  which: Pick<Budget, 'projectId' | 'userId' | 'validFrom'>,
  author: BudgetAuthor,
  wait: Wait,
): Promise<Budget | undefined> {
  return ledger.transact(
    'budget',
    function* (transaction): Work<Budget | undefined | Undone<undefined>> {
      yield* transaction.lock(which.projectId);
      const budget = (yield* budgetsOfOwner(ledger.database.queries, which)).find(
        ({ validFrom }) => validFrom === which.validFrom,
      );
      if (budget === undefined) {
        return new Undone(undefined);
      }
      yield* eraseBudget(ledger, budget, author);
      return budget;
    },
    wait,
    { project: which.projectId },
  );
}

/**
 * The budgets in force, sorted by project, user and time. `projectId`: `undefined` = all projects.
 * @throws LedgerUnavailableError
 */
export function listBudgets(
  ledger: Ledger,
  projectId: string | undefined,
  wait: Wait,
): Promise<BudgetUsage[]> {
  return ledger.read(
    'read',
    function* () {
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
      const taken = new Map(
        (yield* rows(balances.compile())).map((row) => [`${row.project_id}\0${row.name}`, row.balance]),
      );
      return budgets.map((row) => {
        const budget = budgetOf(row);
        const balance = taken.get(`${budget.projectId}\0${budgetAccount(budget)}`) ?? 0n;
        return { ...budget, taken: balance, left: budget.amount - balance };
      });
    },
    wait,
  );
}

/** A budget to set. It replaces one of the same owner that starts at the same second. */
export type WantedBudget = Omit<Budget, 'id'>;

export interface BudgetAuthor {
  readonly who: string;
  readonly reason: string | null;
}

/** Another budget of the owner that would overlap and starts at a different second. */
export function otherOverlapping(wanted: WantedBudget, ofOwner: readonly Budget[]): Budget | undefined {
  return ofOwner.find(
    ({ validFrom, validUntil }) =>
      validFrom !== wanted.validFrom && validFrom < wanted.validUntil && wanted.validFrom < validUntil,
  );
}

/** Writes a budget and its change. A removed budget is set again with its id and its charges. */
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

/** Removes a budget in force. Past charges stay. */
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
