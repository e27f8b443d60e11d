/** Many budgets at once: all of them, or none. Each step is one query, however many lines there are. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { rows, Undone, type Work } from '../storage/database.ts';
import { recordsTable } from '../storage/query-parts.ts';
import type { BudgetsTable } from '../storage/schema.ts';
import type { Transaction } from '../transactions/transaction.ts';
import type { BudgetAuthor } from './budgets.ts';
import type { WantedLine } from './file.ts';
import { type ImportPlan, type KnownBudget, type PlannedLine, planImport } from './plan.ts';
import { budgetOf } from './rows.ts';

/** What would be set. Writes nothing and locks nothing. @throws LedgerUnavailableError */
export function tryImport(ledger: Ledger, wanted: readonly WantedLine[], wait: Wait): Promise<ImportPlan> {
  return ledger.read('read', () => planned(ledger, wanted), wait);
}

/**
 * Sets the budgets of a file, which replace those of the same owner that start at the same second; others stay. Leases of all its projects wait
 * meanwhile. @throws LedgerUnavailableError
 */
export function importBudgets(
  ledger: Ledger,
  wanted: readonly WantedLine[],
  author: BudgetAuthor,
  wait: Wait,
): Promise<ImportPlan> {
  return ledger.transact('budget', (transaction) => imported(ledger, transaction, wanted, author), wait, {
    isRefused: ({ mistakes }) => mistakes.length > 0,
  });
}

function* imported(
  ledger: Ledger,
  transaction: Transaction,
  wanted: readonly WantedLine[],
  author: BudgetAuthor,
): Work<ImportPlan | Undone<ImportPlan>> {
  yield* transaction.lockAll(ledger.database, projectsOf(wanted));
  const plan = yield* planned(ledger, wanted);
  if (plan.mistakes.length > 0) {
    return new Undone(plan);
  }
  const changes = plan.lines.filter(({ outcome }) => outcome !== 'unchanged');
  const added = yield* addBudgets(
    ledger,
    changes.filter(({ before }) => before === undefined),
  );
  yield* replaceBudgets(
    ledger,
    changes.filter(({ before }) => before !== undefined),
  );
  yield* addChanges(ledger, changes, added, author);
  const { crossings } = ledger.statements;
  if (crossings !== undefined) {
    for (const { before, wanted: budget } of changes) {
      // Of a new one, nothing is taken.
      if (before !== undefined) {
        const amount = before.isRemoved ? undefined : before.amount;
        yield* crossings.budgetSet({ ...budget, id: before.id }, amount, author.who);
      }
    }
  }
  return plan;
}

function* planned(ledger: Ledger, wanted: readonly WantedLine[]): Work<ImportPlan> {
  const { queries, dialect } = ledger.database;
  const table = recordsTable(
    dialect,
    [['project_id', 'text']],
    projectsOf(wanted).map((id) => [id]),
  );
  const query = sql<BudgetsTable & { id: bigint }>`
    select * from budgets where project_id in (select project_id from ${table} as listed)`;
  const known = (yield* rows(query.compile(queries))).map(
    (row): KnownBudget => ({ ...budgetOf(row), isRemoved: row.removed_at !== null }),
  );
  return planImport(wanted, known);
}

/** Returns their ids, by the keys of `keyOf`. */
function* addBudgets({ database }: Ledger, lines: readonly PlannedLine[]): Work<Map<string, bigint>> {
  if (lines.length === 0) {
    return new Map();
  }
  const table = recordsTable(
    database.dialect,
    [
      ['project_id', 'text'],
      ['user_id', 'text'],
      ['valid_from', 'bigint'],
      ['valid_until', 'bigint'],
      ['amount', 'bigint'],
    ],
    lines.map(({ wanted: { projectId, userId, validFrom, validUntil, amount } }) => [
      ...[projectId, userId, validFrom, validUntil, amount],
    ]),
  );
  const query = sql<Pick<BudgetsTable, 'project_id' | 'user_id' | 'valid_from'> & { id: bigint }>`
    insert into budgets (project_id, user_id, valid_from, valid_until, amount)
    select project_id, user_id, valid_from, valid_until, amount from ${table} as listed
    returning id, project_id, user_id, valid_from`;
  const added = yield* rows(query.compile(database.queries));
  return new Map(
    added.map((row) => [
      keyOf({ projectId: row.project_id, userId: row.user_id, validFrom: row.valid_from }),
      row.id,
    ]),
  );
}

function* replaceBudgets({ database }: Ledger, lines: readonly PlannedLine[]): Work<void> {
  if (lines.length === 0) {
    return;
  }
  const table = recordsTable(
    database.dialect,
    [
      ['id', 'bigint'],
      ['valid_until', 'bigint'],
      ['amount', 'bigint'],
    ],
    lines.map(({ before, wanted: { validUntil, amount } }) => [before?.id ?? 0n, validUntil, amount]),
  );
  const query = sql`
    update budgets set valid_until = wanted.valid_until, amount = wanted.amount, removed_at = null
    from ${table} as wanted where budgets.id = wanted.id`;
  yield* rows(query.compile(database.queries));
}

function* addChanges(
  ledger: Ledger,
  lines: readonly PlannedLine[],
  added: ReadonlyMap<string, bigint>,
  { who, reason }: BudgetAuthor,
): Work<void> {
  if (lines.length === 0) {
    return;
  }
  const { database } = ledger;
  const table = recordsTable(
    database.dialect,
    [
      ['budget', 'bigint'],
      ['project_id', 'text'],
      ['user_id', 'text'],
      ['valid_from', 'bigint'],
      ['valid_until', 'bigint'],
      ['amount', 'bigint'],
    ],
    lines.map(({ before, wanted }) => [
      before?.id ?? added.get(keyOf(wanted)) ?? 0n,
      ...[wanted.projectId, wanted.userId, wanted.validFrom, wanted.validUntil, wanted.amount],
    ]),
  );
  const query = sql`
    insert into budget_changes (at, budget, project_id, user_id, operation, valid_from, valid_until, amount, who, reason)
    select cast(${ledger.now()} as bigint), budget, project_id, user_id, 'set', valid_from, valid_until, amount,
      cast(${who} as text), cast(${reason} as text)
    from ${table} as listed`;
  yield* rows(query.compile(database.queries));
}

function projectsOf(wanted: readonly WantedLine[]): string[] {
  return [...new Set(wanted.map(({ wanted: { projectId } }) => projectId))];
}

function keyOf({
  projectId,
  userId,
  validFrom,
}: Pick<WantedLine['wanted'], 'projectId' | 'userId' | 'validFrom'>): string {
  return JSON.stringify([projectId, userId, String(validFrom)]);
}
