/**
 * Imports many budgets: all or none. The plan is computed before the transaction, in steps that yield to the
 * event loop. The transaction checks that the plan still holds; each of its steps is one query, whatever the
 * number of lines.
 */
import { type RawBuilder, sql } from 'kysely';
import { type Wait, waitFor } from '../../base/deadline.ts';
import { LedgerUnavailableError } from '../../base/errors.ts';
import { timedYield, yieldToEventLoop } from '../../base/yield-to-event-loop.ts';
import { BUDGET_ACCOUNT } from '../../filter/claim.ts';
import type { Ledger } from '../ledger.ts';
import { type Database, rows, Undone, type Work } from '../storage/database.ts';
import { recordsTable } from '../storage/query-parts.ts';
import type { BudgetsTable } from '../storage/schema.ts';
import type { Transaction } from '../transactions/transaction.ts';
import type { BudgetAuthor } from './budgets.ts';
import type { WantedLine } from './file.ts';
import { type ImportPlan, type KnownBudget, type PlannedLine, planImport } from './plan.ts';
import { budgetOf } from './rows.ts';

/** Projects whose budgets are read at once. */
const PIECE = 500;
/**
 * Maximum number of plans: an import plans again if one of its budgets was changed. Of concurrent imports,
 * one succeeds each time.
 */
const ATTEMPTS = 20;

/** What an import would set; no writes, no locks. @throws LedgerUnavailableError */
export async function tryImport(
  ledger: Ledger,
  wanted: readonly WantedLine[],
  wait: Wait,
): Promise<ImportPlan> {
  return (await planned(ledger, wanted, wait)).plan;
}

/**
 * Sets the budgets of a file. They replace budgets of the same owner that start at the same second; others
 * stay. Leases of all these projects wait for the transaction. @throws LedgerUnavailableError
 */
export async function importBudgets(
  ledger: Ledger,
  wanted: readonly WantedLine[],
  author: BudgetAuthor,
  wait: Wait,
): Promise<ImportPlan> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    wait.throwIfOver();
    const found = await planned(ledger, wanted, wait);
    if (found.plan.mistakes.length > 0) {
      return found.plan;
    }
    const lines = await importLines(ledger.database, found.plan.lines, wait);
    await yieldToEventLoop();
    try {
      const isDone = await ledger.transact(
        'budget',
        (transaction) => imported(ledger, transaction, found, lines, author),
        wait,
        { isRefused: (done) => !done },
      );
      if (isDone) {
        return found.plan;
      }
    } finally {
      await yieldToEventLoop();
      await lines.remove().catch(() => {});
      await yieldToEventLoop();
    }
  }
  throw new LedgerUnavailableError('the budgets are changed by others all the time');
}

interface Planned {
  readonly plan: ImportPlan;
  readonly projects: readonly string[];
  /** Number of changes of the projects' budgets before planning. */
  readonly changes: bigint;
}

async function planned(ledger: Ledger, wanted: readonly WantedLine[], wait: Wait): Promise<Planned> {
  const projects = [...new Set(wanted.map(({ wanted: { projectId } }) => projectId))];
  const known: KnownBudget[] = [];
  let changes = 0n;
  const yieldIfDue = timedYield();
  for (let at = 0; at < projects.length; at += PIECE) {
    await yieldIfDue();
    const listed = recordsTable(
      ledger.database.dialect,
      [['project_id', 'text']],
      projects.slice(at, at + PIECE).map((id) => [id]),
    );
    const query = sql<BudgetsTable & { id: bigint }>`
      select * from budgets where project_id in (select project_id from ${listed} as listed)`;
    changes += await ledger.read(
      'read',
      function* () {
        for (const row of yield* rows(query.compile(ledger.database.queries))) {
          known.push({ ...budgetOf(row), isRemoved: row.removed_at !== null });
        }
        return yield* changesIn(ledger.database, listed);
      },
      wait,
    );
  }
  return { plan: await planImport(wanted, known), projects, changes };
}

/** Number of changes of the projects' budgets ever: rows are only added. `listed`: a table of projects. */
function* changesIn({ queries }: Database, listed: ImportLines['table']): Work<bigint> {
  const query = sql<{ count: bigint }>`
    select count(*) as count from budget_changes where project_id in (select project_id from ${listed} as listed)`;
  const [row] = yield* rows(query.compile(queries));
  return row?.count ?? 0n;
}

/** `false` = the plan no longer holds, and nothing is written. */
function* imported(
  ledger: Ledger,
  transaction: Transaction,
  { plan, projects, changes }: Planned,
  lines: ImportLines,
  { who, reason }: BudgetAuthor,
): Work<boolean | Undone<boolean>> {
  const { database } = ledger;
  if (!(yield* lines.isWhole())) {
    return new Undone(false);
  }
  const { table } = lines;
  yield* transaction.lockAll(database, projects, sql`(select distinct project_id from ${table} as lines)`);
  if ((yield* changesIn(database, table)) !== changes) {
    return new Undone(false);
  }
  const steps = [
    sql`insert into budgets (project_id, user_id, valid_from, valid_until, amount)
      select project_id, user_id, valid_from, valid_until, amount from ${table} as lines
      where is_changed = 1 and budget is null`,
    sql`update budgets set valid_until = lines.valid_until, amount = lines.amount, removed_at = null
      from ${table} as lines where budgets.id = lines.budget and lines.is_changed = 1`,
    // Each new budget has exactly one row with these dates by now.
    sql`insert into budget_changes (at, budget, project_id, user_id, operation, valid_from, valid_until, amount, who, reason)
      select cast(${ledger.now()} as bigint), coalesce(lines.budget, (select id from budgets
          where budgets.project_id = lines.project_id and budgets.user_id is not distinct from lines.user_id
            and budgets.valid_from = lines.valid_from)),
        project_id, user_id, 'set', valid_from, valid_until, amount, cast(${who} as text), cast(${reason} as text)
      from ${table} as lines where is_changed = 1`,
  ];
  for (const step of steps) {
    yield* rows(step.compile(database.queries));
  }
  const { crossings } = ledger.statements;
  if (crossings !== undefined) {
    // Nothing is taken of a new budget.
    const taken = sql<{ number: bigint; balance: bigint }>`
      select lines.number, accounts.balance from ${table} as lines join accounts
        on accounts.project_id = lines.project_id and accounts.name = ${sql.lit(BUDGET_ACCOUNT)} || lines.budget
      where lines.is_changed = 1 and accounts.balance > 0 order by lines.number`;
    for (const { number, balance } of yield* rows(taken.compile(database.queries))) {
      const { before, wanted: budget } = plan.lines[Number(number)] ?? {};
      if (before !== undefined && budget !== undefined) {
        const amount = before.isRemoved ? undefined : before.amount;
        yield* crossings.budgetSet({ ...budget, id: before.id }, amount, who, balance);
      }
    }
  }
  return true;
}

/** The lines of an import as a table for queries. It keeps the transaction, for which leases wait, short. */
interface ImportLines {
  /** With the columns of `COLUMNS`. */
  readonly table: RawBuilder<unknown>;
  /** Whether all lines are present: a reopened connection has none. */
  isWhole(): Work<boolean>;
  /** Must be called at the end. */
  remove(): Promise<void>;
}

const COLUMNS = [
  ['number', 'bigint'],
  ['project_id', 'text'],
  ['user_id', 'text'],
  ['valid_from', 'bigint'],
  ['valid_until', 'bigint'],
  ['amount', 'bigint'],
  // The replaced row; null = new.
  ['budget', 'bigint'],
  // 1 = changed.
  ['is_changed', 'bigint'],
] as const;
const NAMES = sql.join(COLUMNS.map(([name]) => sql.ref(name)));

/** Lines written to a temporary table at once; other transactions run in between. */
const LINES = 200;

/** Counts the imports of this process: concurrent ones share a connection. */
let imports = 0;

/** Not visible to other connections. @throws LedgerUnavailableError */
async function importLines(
  database: Database,
  lines: readonly PlannedLine[],
  wait: Wait,
): Promise<ImportLines> {
  if (database.dialect === 'postgresql') {
    // Connections are pooled, so the lines are sent with each query.
    const table = recordsTable(database.dialect, COLUMNS, lines.map(recordOf));
    return { table, isWhole: always, remove: async () => {} };
  }
  const { queries } = database;
  imports += 1;
  const id = imports;
  const create = sql`create temp table if not exists import_lines (import integer not null,
    number integer not null, project_id text not null, user_id text, valid_from integer not null,
    valid_until integer not null, amount integer not null, budget integer, is_changed integer not null,
    primary key (import, project_id, number)) without rowid`.compile(queries);
  const written = (step: RawBuilder<unknown>, within: Wait) =>
    database.transact(function* () {
      yield* rows(create);
      yield* rows(step.compile(queries));
    }, within);
  // Also after the import was cancelled.
  const remove = () => written(sql`delete from temp.import_lines where import = ${id}`, waitFor(undefined));
  const records = lines.map(recordOf);
  const yieldIfDue = timedYield();
  try {
    for (let at = 0; at < records.length; at += LINES) {
      await yieldIfDue();
      const some = recordsTable(database.dialect, COLUMNS, records.slice(at, at + LINES));
      const add = sql`insert into temp.import_lines (import, ${NAMES}) select ${id}, ${NAMES} from ${some} as some`;
      await written(add, wait);
    }
  } catch (thrown) {
    await remove().catch(() => {});
    throw thrown;
  }
  const count = sql<{ count: bigint }>`select count(*) as count from temp.import_lines where import = ${id}`;
  return {
    table: sql`(select ${NAMES} from temp.import_lines where import = ${id})`,
    *isWhole() {
      yield* rows(create);
      const [row] = yield* rows(count.compile(queries));
      return row?.count === BigInt(lines.length);
    },
    remove,
  };
}

// biome-ignore lint/correctness/useYield: it runs no query.
function* always(): Work<boolean> {
  return true;
}

function recordOf({ wanted, before, outcome }: PlannedLine, index: number) {
  const { projectId, userId, validFrom, validUntil, amount } = wanted;
  return [
    BigInt(index),
    projectId,
    userId,
    validFrom,
    validUntil,
    amount,
    before?.id ?? null,
    outcome === 'unchanged' ? 0n : 1n,
  ];
}
