/** The leases of a project, in pages. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import { type Amount, budgetAccount } from '../../filter/claim.ts';
import { resourcePeriods } from '../accounting/demand.ts';
import type { Ledger } from '../ledger.ts';
import { rows, type Work } from '../storage/database.ts';
import { isAmong } from '../storage/query-parts.ts';
import type { LeaseRow } from '../storage/schema.ts';
import { type ChargedRow, hasCharge, type Share, sharesOf } from './charges.ts';
import {
  cursorOf,
  numberIn,
  type PageOf,
  type PageQuery,
  type Piece,
  reading,
  SCANNED,
  scanned,
} from './pages.ts';
import { type ListedRow, listedRow } from './reports.ts';

export interface LeasesQuery extends PageQuery {
  readonly projectId: string;
  readonly userId?: string | undefined;
  /**
   * `open` = pending and active. Leases past their end date count as ended, even if the ledger has not
   * processed it yet.
   */
  readonly state?: 'pending' | 'active' | 'open' | 'ended' | undefined;
  /** Only leases that overlap with this time, in microseconds of the epoch. */
  readonly from?: bigint | undefined;
  readonly until?: bigint | undefined;
}

export interface LeaseRowView extends ListedRow {
  /** The actual end, if it ended early. */
  readonly end: bigint;
  readonly state: 'pending' | 'active' | 'ended';
  /** Time of the last request: creation or change. */
  readonly changedAt: bigint;
  /** Whether it has only one alternative; otherwise the most expensive is charged. */
  readonly isConfirmed: boolean;
  /** What it takes from each budget over time. */
  readonly charges: readonly Share[];
  /** What it takes from the project's budgets (`Amount`), by its most expensive alternative. */
  readonly cost: Amount;
  /** Resource type → requested count. Empty = unknown: recorded by an older version. */
  readonly resources: ReadonlyMap<string, number>;
}

/** Leases whose costs are read at once. */
const COSTED = 50;

/**
 * Newest first. Only `next` shows whether there are more: a page may be shorter than `limit`, or empty, if
 * few of many leases match. @throws LedgerUnavailableError, CursorError
 */
export async function listProjectLeases(
  ledger: Ledger,
  query: LeasesQuery,
  wait: Wait,
): Promise<PageOf<LeaseRowView>> {
  const read = reading(ledger, wait);
  const before = numberIn(query.after);
  const { items: ids, next } =
    query.state !== undefined && query.state !== 'ended'
      ? await read(() => openIds(ledger, query, before))
      : await scanned(
          query.limit,
          before,
          (last) => read(() => piece(ledger, query, last)),
          (id) => id,
        );
  const budgets = await read(() => budgetAccounts(ledger, query.projectId));
  const items: LeaseRowView[] = [];
  for (let start = 0; start < ids.length; start += COSTED) {
    items.push(...(await read(() => rowViews(ledger, budgets, ids.slice(start, start + COSTED)))));
  }
  return { items, next: next === undefined ? undefined : cursorOf([next]) };
}

/** Open leases are few, and indexed. */
function* openIds(
  ledger: Ledger,
  query: LeasesQuery,
  before: bigint | undefined,
): Work<PageOf<bigint, bigint>> {
  const now = ledger.now();
  const { state, limit } = query;
  let found = filtered(ledger, query)
    .where('project_id', '=', query.projectId)
    .where('state', '=', 'open')
    .where('ends_at', '>', now);
  if (state !== 'open') {
    found = found.where('starts_at', state === 'pending' ? '>' : '<=', now);
  }
  if (before !== undefined) {
    found = found.where('id', '<', before);
  }
  const ids = (yield* rows(
    found
      .orderBy('id', 'desc')
      .limit(limit + 1)
      .compile(),
  )).map(({ id }) => id);
  return { items: ids.slice(0, limit), next: ids.length > limit ? ids[limit - 1] : undefined };
}

/** `lowest`: the last row that was read; `undefined` = no more rows. */
function* piece(ledger: Ledger, query: LeasesQuery, before: bigint | undefined): Work<Piece<bigint>> {
  const { queries, dialect } = ledger.database;
  let all = queries.selectFrom('leases').select('id').where('project_id', '=', query.projectId);
  if (before !== undefined) {
    all = all.where('id', '<', before);
  }
  const isWanted = query.userId !== undefined || query.state !== undefined || hasSpan(query);
  const size = isWanted ? SCANNED : query.limit + 1;
  const found = (yield* rows(all.orderBy('id', 'desc').limit(size).compile())).map(({ id }) => id);
  const lowest = found.length < size ? undefined : found.at(-1);
  if (!isWanted) {
    return { found, lowest };
  }
  let matching = filtered(ledger, query).where(isAmong(dialect, 'id', found));
  if (query.state === 'ended') {
    const now = ledger.now();
    matching = matching.where((row) => row.or([row('state', '=', 'ended'), row('ends_at', '<=', now)]));
  }
  const ids = yield* rows(matching.orderBy('id', 'desc').compile());
  return { found: ids.map(({ id }) => id), lowest };
}

function hasSpan({ from, until }: LeasesQuery): boolean {
  return from !== undefined || until !== undefined;
}

/** Without the project: when the rows are given by id, the database must not choose another index. */
function filtered({ database }: Ledger, { userId, from, until }: LeasesQuery) {
  let query = database.queries.selectFrom('leases').select('id');
  if (userId !== undefined) {
    query = query.where('user_id', '=', userId);
  }
  if (from !== undefined) {
    query = query.where(sql<boolean>`ends_at > ${from} and coalesce(ended_at, ends_at) > ${from}`);
  }
  return until === undefined ? query : query.where('starts_at', '<', until);
}

/** The rows with these ids, in the same order. */
export function* rowViews(
  ledger: Ledger,
  budgets: BudgetAccounts,
  ids: readonly bigint[],
): Work<LeaseRowView[]> {
  const { queries, dialect } = ledger.database;
  const now = ledger.now();
  const found = yield* rows(
    queries
      .selectFrom('leases')
      .selectAll()
      .where(isAmong(dialect, 'id', ids))
      .orderBy('id', 'desc')
      .compile(),
  );
  const charges = yield* chargesOf(ledger, found);
  return found.map((row) => {
    const shares = sharesOf(row, charges.get(row.id), budgets);
    const cost = projectShares(shares, budgets).reduce((total, { amount }) => total + amount, 0n);
    return { ...viewOf(row, now), charges: shares, cost };
  });
}

function viewOf(row: LeaseRow, now: bigint): Omit<LeaseRowView, 'charges' | 'cost'> {
  const isOver = row.state === 'ended' || row.ends_at <= now;
  return {
    ...listedRow(row),
    end: row.ended_at ?? row.ends_at,
    state: isOver ? 'ended' : row.starts_at > now ? 'pending' : 'active',
    changedAt: row.touched_at,
    isConfirmed: isOver || row.alternatives === null,
    resources: resourcePeriods(row.resources).at(-1)?.counts ?? new Map(),
  };
}

/**
 * Maximum number of budgets of a project and its users that are read; project budgets and the latest user
 * budgets come first.
 */
const MAX_BUDGETS = 5000;

/** Columns for `sharesOf`. */
export const CHARGED = [
  'id',
  'user_id',
  'starts_at',
  'ends_at',
  'ended_at',
  'state',
  'demand',
  'claims',
  'alternatives',
  'recorded_at',
  'touched_at',
  'resources',
] as const;

/** Account → its budget, with validity in seconds of the epoch. */
export type BudgetAccounts = ReadonlyMap<
  string,
  { readonly isOfUser: boolean; readonly from: bigint; readonly until: bigint }
>;

/** The budgets of a project and its users, including removed ones, since their charges stay. */
export function* budgetAccounts(ledger: Ledger, projectId: string): Work<BudgetAccounts> {
  const query = ledger.database.queries
    .selectFrom('budgets')
    .select(['id', 'user_id', 'valid_from', 'valid_until'])
    .where('project_id', '=', projectId)
    .orderBy('user_id', (order) => order.asc().nullsFirst())
    .orderBy('valid_until', 'desc')
    .limit(MAX_BUDGETS);
  return new Map(
    (yield* rows(query.compile())).map((budget) => {
      const { user_id, valid_from: from, valid_until: until } = budget;
      return [budgetAccount(budget), { isOfUser: user_id !== null, from, until }];
    }),
  );
}

/** Lease → account → charge, for leases whose row does not determine it. */
export function* chargesOf(
  { database: { queries, dialect } }: Ledger,
  leases: readonly (ChargedRow & { readonly id: bigint })[],
): Work<Map<bigint, Map<string, Amount>>> {
  const asked = leases.filter((row) => !hasCharge(row)).map(({ id }) => id);
  const charges = new Map(asked.map((id) => [id, new Map<string, Amount>()]));
  if (asked.length > 0) {
    const sums = yield* rows(
      sql<{ lease: bigint; account: string; charged: bigint }>`
        select lease, account, cast(sum(delta) as bigint) as charged from entries
        where ${isAmong(dialect, 'lease', asked)} and account like 'usage!_budget/%' escape '!'
        group by lease, account`.compile(queries),
    );
    for (const { lease, account, charged } of sums) {
      charges.get(lease)?.set(account, charged);
    }
  }
  return charges;
}

/**
 * The part of a lease's charges that counts for the project: from the project's own budgets, otherwise from
 * its user's. Both pay for the same usage, so it counts once. Usage without a budget does not count.
 */
export function projectShares(charges: readonly Share[], budgets: BudgetAccounts): Share[] {
  const shares = charges.filter(({ account }) => !account.startsWith('usage_budget/uncovered'));
  const ofProject = shares.filter(({ account }) => budgets.get(account)?.isOfUser === false);
  return ofProject.length > 0 ? ofProject : shares;
}
