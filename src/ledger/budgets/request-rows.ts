/** Requests for more budget as the table holds them: one, or all in pages. */
import { type Kysely, type Selectable, sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Amount, Budget } from '../../filter/claim.ts';
import type { Ledger } from '../ledger.ts';
import { misconfigured } from '../open.ts';
import { cursorOf, keyOf, type PageOf, type PageQuery, reading } from '../reports/pages.ts';
import { rows, type Work } from '../storage/database.ts';
import { textsTable } from '../storage/query-parts.ts';
import {
  type BudgetRequestState,
  type BudgetRequestsTable,
  OPEN_STATES,
  type Tables,
} from '../storage/schema.ts';

/** Who did it and when, in microseconds of the epoch, and what they said. */
export interface TakenStep {
  readonly at: bigint;
  readonly who: string;
  readonly reason: string | null;
}

export interface BudgetRequest extends Pick<Budget, 'projectId' | 'userId'> {
  readonly id: bigint;
  /** What the budget should grow by. */
  readonly amount: Amount;
  /** In seconds of the epoch: until when it is needed. */
  readonly validUntil: bigint;
  /** Why it is asked for. */
  readonly reason: string;
  readonly state: BudgetRequestState;
  readonly asked: Pick<TakenStep, 'at' | 'who'>;
  /** `Caller.identity` */
  readonly asker: string;
  readonly endorsed: TakenStep | null;
  /** What made it final. */
  readonly settled: TakenStep | null;
  /** What the budget has grown by, and which one. */
  readonly granted: {
    readonly amount: Amount;
    readonly validUntil: bigint;
    readonly budget: bigint;
  } | null;
}

export function isOpen({ state }: Pick<BudgetRequest, 'state'>): boolean {
  return OPEN_STATES.some((open) => open === state);
}

export function requestOf(row: Selectable<BudgetRequestsTable>): BudgetRequest {
  const { granted_amount: amount, granted_until: validUntil, budget } = row;
  return {
    ...{ id: row.id, projectId: row.project_id, userId: row.user_id, amount: row.amount },
    ...{ validUntil: row.valid_until, reason: row.reason, state: row.state, asker: row.asker },
    asked: { at: row.asked_at, who: row.asked_by },
    endorsed: stepOf(row.endorsed_at, row.endorsed_by, row.endorsed_reason),
    settled: stepOf(row.settled_at, row.settled_by, row.settled_reason),
    granted:
      amount === null || validUntil === null || budget === null ? null : { amount, validUntil, budget },
  };
}

function stepOf(at: bigint | null, who: string | null, reason: string | null): TakenStep | null {
  return at === null || who === null ? null : { at, who, reason };
}

export function* requestIn(queries: Kysely<Tables>, id: bigint): Work<BudgetRequest | undefined> {
  const query = queries.selectFrom('budget_requests').selectAll().where('id', '=', id);
  return (yield* rows(query.compile())).map(requestOf)[0];
}

/** `undefined` = there is none of this id. @throws LedgerUnavailableError, ConfigurationError */
export async function requestById(
  ledger: Ledger,
  id: bigint,
  wait: Wait,
): Promise<BudgetRequest | undefined> {
  await requireRequests(ledger, wait);
  return ledger.read('read', () => requestIn(ledger.database.queries, id), wait);
}

export interface RequestsQuery extends PageQuery {
  /** Only of these projects; `undefined` = of all. */
  readonly projectIds?: readonly string[] | undefined;
  readonly userId?: string | undefined;
  /** Only in these states; `undefined` = in all. */
  readonly states?: readonly BudgetRequestState[] | undefined;
}

/** The newest first. @throws LedgerUnavailableError, ConfigurationError, CursorError */
export async function pageOfRequests(
  ledger: Ledger,
  { limit, after, projectIds, userId, states }: RequestsQuery,
  wait: Wait,
): Promise<PageOf<BudgetRequest>> {
  const [last] = after === undefined ? [] : keyOf(after, ['number']);
  if (projectIds?.length === 0) {
    return { items: [], next: undefined };
  }
  await requireRequests(ledger, wait);
  let query = ledger.database.queries.selectFrom('budget_requests').selectAll();
  if (projectIds !== undefined) {
    const listed = textsTable(ledger.database.dialect, projectIds);
    query = query.where('project_id', 'in', sql<string>`(select value from ${listed})`);
  }
  if (userId !== undefined) {
    query = query.where('user_id', '=', userId);
  }
  if (states !== undefined) {
    query = query.where('state', 'in', states);
  }
  if (typeof last === 'bigint') {
    query = query.where('id', '<', last);
  }
  const page = query.orderBy('id', 'desc').limit(limit + 1);
  const found = await reading(ledger, wait)(() => rows(page.compile()));
  const items = found.slice(0, limit);
  const end = found.length > limit ? items.at(-1) : undefined;
  return { items: items.map(requestOf), next: end && cursorOf([end.id]) };
}

const READY = new WeakSet<Ledger>();

/** Leases do not need the table: it may be missing, or the role may not use it. @throws LedgerUnavailableError, ConfigurationError */
export async function requireRequests(ledger: Ledger, wait: Wait): Promise<void> {
  if (READY.has(ledger)) {
    return;
  }
  const { database } = ledger;
  const applied = sql`select 1 from kysely_migration where name = '0012-budget-requests'`;
  const found = await ledger.read('read', () => rows(applied.compile(database.queries)), wait);
  if (found.length === 0) {
    throw misconfigured('it has no table for requests yet: blazar-enforcement ledger upgrade makes it');
  }
  if (database.dialect === 'postgresql') {
    const { missingRights, NEEDED_FOR_REQUESTS } = await import('../storage/rights.ts');
    const missing = await missingRights(database, NEEDED_FOR_REQUESTS);
    if (missing !== undefined) {
      throw misconfigured(missing);
    }
  }
  READY.add(ledger);
}
