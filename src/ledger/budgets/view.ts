/** Budgets for display: one, or all in pages, with what is left and the latest change. */
import { type RawBuilder, sql } from 'kysely';
import { type Wait, waitFor } from '../../base/deadline.ts';
import type { Amount, Budget } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Ledger } from '../ledger.ts';
import { keyOf, type PageOf, type PageQuery, pageOf, reading } from '../reports/pages.ts';
import { rows, type Work } from '../storage/database.ts';
import { containsText, isAmong } from '../storage/query-parts.ts';
import type { BudgetUsage } from './budgets.ts';
import { budgetCsv } from './csv.ts';
import { budgetOf, type TermsRow } from './rows.ts';
import { exportedBudget } from './terms.ts';

/** A budget in force, with its latest change. */
export interface BudgetView extends BudgetUsage {
  /** Opaque; changes with each change of the budget. */
  readonly version: string;
  /** Microseconds of the epoch. */
  readonly changedAt: bigint;
  readonly changedBy: string;
  readonly reason: string | null;
}

export interface BudgetsQuery extends PageQuery {
  /** Only these projects; `undefined` = all. */
  readonly projectIds?: readonly string[] | undefined;
  /** Only budgets of this user; `null` = only project budgets; `undefined` = all. */
  readonly userId?: string | null | undefined;
  /** Only budgets in force at this second of the epoch. */
  readonly validAt?: bigint | undefined;
  /** Only budgets whose project or user id contains this text, ignoring the case of a to z. */
  readonly search?: string | undefined;
}

interface ViewRow extends TermsRow {
  readonly id: bigint;
  readonly balance: bigint | null;
  readonly change: bigint | null;
  readonly at: bigint | null;
  readonly who: string | null;
  readonly reason: string | null;
}

/** A page of budgets in force, expired ones too, sorted by project, user and time. @throws LedgerUnavailableError, CursorError */
export async function pageOfBudgets(
  ledger: Ledger,
  query: BudgetsQuery,
  wait: Wait,
): Promise<PageOf<BudgetView>> {
  const after = query.after === undefined ? undefined : keyOf(query.after, ['text', 'text', 'number']);
  if (query.projectIds?.length === 0) {
    return { items: [], next: undefined };
  }
  const found = await reading(ledger, wait)(() => selected(ledger, budgetsAfter(ledger, query, after)));
  return pageOf(found, query.limit, ({ projectId, userId, validFrom }) => [
    projectId,
    userId ?? '',
    validFrom,
  ]);
}

/** `undefined` = unknown or removed. @throws LedgerUnavailableError */
export function budgetById(ledger: Ledger, id: bigint, wait: Wait): Promise<BudgetView | undefined> {
  return reading(ledger, wait)(() => viewOf(ledger, id));
}

/** Like `budgetById`, within a transaction. */
export function* viewOf(ledger: Ledger, id: bigint): Work<BudgetView | undefined> {
  const one = sql`select * from budgets where id = ${id} and removed_at is null`;
  return (yield* selected(ledger, one))[0];
}

/**
 * Selects one more than a page, to see whether another page follows. The key has the order's columns: project
 * budgets come first.
 */
function budgetsAfter(
  { database }: Ledger,
  { limit, projectIds, userId, validAt, search }: BudgetsQuery,
  after: readonly (string | bigint | null)[] | undefined,
) {
  const conditions: RawBuilder<unknown>[] = [sql`removed_at is null`];
  if (projectIds !== undefined) {
    conditions.push(isAmong(database.dialect, 'project_id', projectIds));
  }
  if (userId !== undefined) {
    conditions.push(userId === null ? sql`user_id is null` : sql`user_id = ${userId}`);
  }
  if (validAt !== undefined) {
    conditions.push(sql`valid_from <= ${validAt} and valid_until > ${validAt}`);
  }
  if (search !== undefined) {
    const contains = (column: 'project_id' | 'user_id') => containsText(database.dialect, column, search);
    conditions.push(sql`(${contains('project_id')} or ${contains('user_id')})`);
  }
  if (after !== undefined) {
    const [project, user, from] = after;
    // The first condition alone lets the database use the index of projects.
    conditions.push(sql`project_id >= ${project}`);
    conditions.push(
      sql`(project_id > ${project} or coalesce(user_id, '') > ${user} or (coalesce(user_id, '') = ${user} and valid_from > ${from}))`,
    );
  }
  return sql`select * from budgets where ${sql.join(conditions, sql` and `)}
    order by project_id, coalesce(user_id, ''), valid_from limit ${limit + 1}`;
}

function* selected({ database }: Ledger, budgets: ReturnType<typeof sql>): Work<BudgetView[]> {
  // Each change is read once: looked up for each budget, all of its project would be read for each.
  const query = sql<ViewRow>`
    with page as (${budgets}),
      latest as (select budget, max(id) as id from budget_changes
        where project_id in (select project_id from page) and budget in (select id from page) group by budget)
    select page.id, page.project_id, page.user_id, page.valid_from, page.valid_until, page.amount,
      accounts.balance, changes.id as change, changes.at, changes.who, changes.reason
    from page
    left join accounts on accounts.project_id = page.project_id and accounts.name = 'usage_budget/' || page.id
    left join latest on latest.budget = page.id
    left join budget_changes as changes on changes.id = latest.id
    order by page.project_id, coalesce(page.user_id, ''), page.valid_from`;
  return (yield* rows(query.compile(database.queries))).map(view);
}

function view(row: ViewRow): BudgetView {
  const budget: Budget = budgetOf(row);
  const taken = row.balance ?? 0n;
  return {
    ...budget,
    taken,
    left: budget.amount - taken,
    // Includes the time: after a restore from a backup, the same number may belong to another change.
    version: `${row.change ?? 0n}-${row.at ?? 0n}`,
    changedAt: row.at ?? 0n,
    changedBy: row.who ?? '',
    reason: row.reason,
  };
}

/** By the used share. Each budget is in one class; a budget of 0 is in the last. */
const BUDGET_CLASSES = [
  'under_50_percent',
  '50_to_75_percent',
  '75_to_90_percent',
  '90_to_100_percent',
  '100_percent',
] as const;

export type BudgetClass = (typeof BUDGET_CLASSES)[number];

/** Only the newest budgets are counted, so that the cost does not grow with the age of the ledger. */
const COUNTED_BUDGETS = 10_000;

function inForce(ledger: Ledger): RawBuilder<unknown> {
  const second = ledger.now() / MICROSECONDS_PER_SECOND;
  return sql`(select * from budgets order by id desc limit ${sql.lit(COUNTED_BUDGETS)}) as newest
    left join accounts on accounts.project_id = newest.project_id and accounts.name = 'usage_budget/' || newest.id
    where removed_at is null and valid_from <= ${second} and valid_until > ${second}`;
}

/** Number of budgets in force per class. @throws LedgerUnavailableError */
export async function budgetUse(ledger: Ledger, wait: Wait): Promise<Map<BudgetClass, number>> {
  const { queries } = ledger.database;
  // Fractions are subtracted: a product of two amounts would not fit into 64 bits.
  const query = sql<{ taken: BudgetClass; budgets: bigint }>`
    select taken, count(*) as budgets from (
      select case
        when coalesce(balance, 0) >= amount then '100_percent'
        when balance >= amount - amount / 10 then '90_to_100_percent'
        when balance >= amount - amount / 4 then '75_to_90_percent'
        when balance >= amount - amount / 2 then '50_to_75_percent'
        else 'under_50_percent' end as taken
      from ${inForce(ledger)}
    ) as classified group by taken`;
  // Not `ledger.read`: reading metrics must not count as use of the ledger.
  const found = await ledger.database.read(() => rows(query.compile(queries)), wait);
  const counts = new Map<BudgetClass, number>(BUDGET_CLASSES.map((one) => [one, 0]));
  for (const { taken, budgets } of found) {
    counts.set(taken, Number(budgets));
  }
  return counts;
}

/** A budget in force and its use. */
export interface UsedBudget {
  readonly projectId: string;
  /** `null` = for the whole project. */
  readonly userId: string | null;
  readonly amount: Amount;
  readonly taken: Amount;
  /** In seconds of the epoch. */
  readonly validFrom: bigint;
  readonly validUntil: bigint;
}

/** The budgets in force with the largest used share; at most `most`. @throws LedgerUnavailableError */
export async function mostTakenBudgets(ledger: Ledger, most: number, wait: Wait): Promise<UsedBudget[]> {
  const { queries } = ledger.database;
  const query = sql<UsedBudget>`
    select newest.project_id as "projectId", user_id as "userId", amount, coalesce(balance, 0) as taken,
      valid_from as "validFrom", valid_until as "validUntil"
    from ${inForce(ledger)}
    order by case when amount > 0 then coalesce(balance, 0) * 1.0 / amount else 1 end desc, newest.id
    limit ${most}`;
  return ledger.database.read(() => rows(query.compile(queries)), wait);
}

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
