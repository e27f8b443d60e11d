/** The queries of a usage report: the database aggregates leases that lie within one part of the time. */
import { type RawBuilder, sql } from 'kysely';
import { ceil, floor } from '../../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import type { Ledger } from '../../ledger.ts';
import type { Dialect } from '../../storage/connection.ts';
import { rows, type Work } from '../../storage/database.ts';
import { isAmong } from '../../storage/query-parts.ts';
import type { LeaseRow } from '../../storage/schema.ts';
import type { ChargedRow } from '../charges.ts';
import { CHARGED } from '../leases.ts';

/**
 * Leases aggregated by one query. SQLite blocks the process, reads them twice, and caches this many.
 * PostgreSQL does not block: with more leases there are fewer groups per lease, and its sort memory of 4 MB
 * still holds them.
 */
const PIECES: Readonly<Record<Dialect, number>> = { sqlite: 5000, postgresql: 20_000 };
/** Numbers are summed in two halves: SQLite fails if an intermediate sum overflows. */
export const HALF = 2n ** 32n;

/** Leases whose totals are cached together: see `TotalsCache`. */
const BLOCK = 25_000;

export interface PieceQuery {
  /** `undefined` = all projects. */
  readonly projectId: string | undefined;
  /** Starts of the parts of the time, and the end of the last one: seconds of the epoch, ascending. */
  readonly edges: readonly bigint[];
  /** Whether to group by project, and by user. */
  readonly byProject: boolean;
  readonly byUser: boolean;
  /** Whether to compute amounts. */
  readonly hasAmounts: boolean;
}

/** Rows after `after` up to `last`; `undefined` = no bound. */
export interface RowRange {
  readonly after: bigint | undefined;
  readonly last: bigint | undefined;
}

/** Leases of one owner with equal resources per second, and equal charges if their rows determine them. */
export interface LeaseGroup {
  readonly project_id: string;
  readonly user_id: string;
  /** Index of the part of the time. */
  readonly part: bigint;
  readonly resources: string;
  /**
   * Their claims, from the first on a budget; claims for the whole lease run from 0 to 1. Empty = charges
   * come from entries.
   */
  readonly claims: string;
  /** The row of a single lease that must be read separately. `null` = an aggregated group. */
  readonly odd: bigint | null;
  readonly leases: bigint;
  /** In seconds, like all times here: total duration until the actual or planned ends. */
  readonly run: bigint;
  /** Number of leases that ended before their end date, and their remaining time. */
  readonly early: bigint;
  readonly unused: bigint;
}

interface ChargeGroup {
  readonly project_id: string;
  readonly user_id: string;
  readonly part: bigint;
  readonly account: string;
  readonly high: string;
  readonly low: string;
}

/** A lease that must be read separately. `undone`: 1 = its recording was taken back. */
export type OtherLease = ChargedRow &
  Pick<LeaseRow, 'id' | 'project_id' | 'user_id'> & { readonly undone: bigint };

interface Piece {
  readonly groups: readonly LeaseGroup[];
  readonly charges: readonly ChargeGroup[];
  /** Rows for `otherLeases`. */
  readonly odd: readonly bigint[];
  /** The last row of the piece; `undefined` = no more rows. */
  readonly last: bigint | undefined;
}

/** Up to `BLOCK` leases of the query, with a checksum to detect changes. */
export interface Block {
  readonly range: RowRange;
  /** Changes with everything that a report shows of these leases, except budgets. */
  readonly checksum: string;
  /** The time that contains all of them, in seconds. */
  readonly from: bigint;
  readonly until: bigint;
  /** Whether any of them may overlap with the time of the report. */
  readonly mayCount: boolean;
}

/**
 * A lease's revision increases with every change that affects a report. It stays when an end by date is
 * recorded or taken back: neither changes a report.
 */
export function* usageBlock(ledger: Ledger, query: PieceQuery, after: bigint | undefined): Work<Block> {
  const range = { after, last: yield* lastOf(ledger, query, { after, last: undefined }, BLOCK) };
  const [found] = yield* rows(
    sql<Record<'starts_at' | 'ends_at' | 'moved', bigint | null> & { checksum: string }>`
      select min(starts_at) as starts_at, max(ends_at) as ends_at, cast(count(alternatives) as bigint) as moved,
        cast(count(*) as text) || ' ' || coalesce(cast(sum(revision / ${sql.lit(HALF)}) as text), '') || ' ' ||
          coalesce(cast(sum(revision % ${sql.lit(HALF)}) as text), '') as checksum
      from leases where ${within(query, range)}`.compile(ledger.database.queries),
  );
  const from = floor(found?.starts_at ?? 0n);
  const until = ceil(found?.ends_at ?? 0n);
  const first = query.edges[0] ?? 0n;
  const last = query.edges.at(-1) ?? 0n;
  const mayCount = (until > first && from < last) || found?.moved !== 0n;
  return { range, checksum: found?.checksum ?? '', from, until, mayCount };
}

/** The next piece of a range. */
export function* usagePiece(ledger: Ledger, query: PieceQuery, rest: RowRange): Work<Piece> {
  const { queries, dialect } = ledger.database;
  const end = yield* lastOf(ledger, query, rest, PIECES[dialect]);
  const range = { after: rest.after, last: end ?? rest.last };
  const groups = yield* rows(leaseGroups(dialect, query, range).compile(queries));
  return {
    groups: groups.filter((group) => group.odd === null),
    charges: query.hasAmounts ? yield* rows(chargeGroups(dialect, query, range).compile(queries)) : [],
    odd: groups.flatMap((group) => group.odd ?? []),
    last: end,
  };
}

export function amountOf({ high, low }: Pick<ChargeGroup, 'high' | 'low'>): bigint {
  return BigInt(high) * HALF + BigInt(low);
}

/**
 * The last row of the first `size` rows of a range; `undefined` = there are not more rows. For all projects
 * it is computed without reading rows, since ids have almost no gaps.
 */
function* lastOf(
  { database: { queries } }: Ledger,
  query: PieceQuery,
  range: RowRange,
  size: number,
): Work<bigint | undefined> {
  const all = queries.selectFrom('leases');
  if (query.projectId === undefined) {
    const [highest] =
      range.last === undefined
        ? yield* rows(all.select(({ fn }) => fn.max<bigint | null>('id').as('id')).compile())
        : [{ id: range.last }];
    const last = (range.after ?? 0n) + BigInt(size);
    return last < (highest?.id ?? 0n) ? last : undefined;
  }
  const bound = all
    .select('id')
    .where(sql<boolean>`${within(query, range)}`)
    .orderBy('id')
    .offset(size - 1)
    .limit(1);
  const last = (yield* rows(bound.compile()))[0]?.id;
  return last === range.last ? undefined : last;
}

const MICROSECONDS = sql.lit(MICROSECONDS_PER_SECOND);
const BEGAN = sql`(starts_at / ${MICROSECONDS})`;
const ENDS = sql`((ends_at + ${sql.lit(MICROSECONDS_PER_SECOND - 1n)}) / ${MICROSECONDS})`;
const IS_EARLY = sql`(state = 'ended' and ended_at < ends_at)`;
/** The last entry is an undo: the recording was taken back, so it is not counted as a lease. */
const IS_UNDONE = sql`(select operation from entries where entries.lease = leases.id order by entries.id desc limit 1) = 'undo'`;
/** See `hasCharge`. A lease that ended before it started is charged what its entries say. */
const TELLS_CHARGE = sql`(touched_at = recorded_at and (state = 'open' or coalesce(ended_at, 0) = ends_at))`;
/** Reserved the same all the time: `recordedResources` starts with the last period. */
const IS_EVEN = sql`substr(resources, 1, 7) = '[[null,'`;

function within({ projectId }: PieceQuery, { after, last }: RowRange): RawBuilder<unknown> {
  const conditions = [
    ...(projectId === undefined ? [] : [sql`project_id = ${projectId}`]),
    ...(after === undefined ? [] : [sql`id > ${after}`]),
    ...(last === undefined ? [] : [sql`id <= ${last}`]),
  ];
  return conditions.length === 0 ? sql`1 = 1` : sql.join(conditions, sql` and `);
}

/**
 * The part of the time that contains the whole lease. null = none contains it, its resources have changed, or
 * it may have been moved and take something at another time.
 */
function partOf({ edges }: PieceQuery): RawBuilder<unknown> {
  const parts = edges.slice(1).map((until, index) => {
    const from = instant(edges[index] ?? 0n);
    return sql`when starts_at >= ${from} and ends_at <= ${instant(until)} then ${sql.lit(index)}`;
  });
  return sql`case when alternatives is null and ${IS_EVEN} then case ${sql.join(parts, sql` `)} end end`;
}

function instant(second: bigint): RawBuilder<unknown> {
  return sql.lit(second * MICROSECONDS_PER_SECOND);
}

function owner({ byProject, byUser }: PieceQuery): RawBuilder<unknown> {
  const project = byProject ? sql`project_id` : sql`'' as project_id`;
  return byUser ? sql`${project}, user_id` : sql`${project}, '' as user_id`;
}

/**
 * Leases of the piece that may count. The limit is never reached: it makes SQLite compute each column once.
 */
function counted(
  dialect: Dialect,
  query: PieceQuery,
  range: RowRange,
  columns: RawBuilder<unknown>,
  more: RawBuilder<unknown> = sql`1 = 1`,
): RawBuilder<unknown> {
  const { edges } = query;
  const from = edges[0] ?? 0n;
  const until = edges.at(-1) ?? 0n;
  return sql`(
    select id as number, ${owner(query)}, ${partOf(query)} as part, ${columns}
    from leases where ${within(query, range)} and ${more} and
      (ends_at > ${instant(from)} and starts_at < ${instant(until)} or alternatives is not null)
    limit ${sql.lit(PIECES[dialect])}) as counted`;
}

function leaseGroups(dialect: Dialect, query: PieceQuery, range: RowRange): RawBuilder<LeaseGroup> {
  const position = sql`${sql.raw(dialect === 'sqlite' ? 'instr' : 'strpos')}(claims, '["usage_budget/')`;
  const onBudgets = sql`coalesce('[' || substr(claims, nullif(${position}, 0)), '[]')`;
  // Makes claims for the whole lease equal texts, whatever its dates.
  const even = sql`replace(${onBudgets}, ',"' || ${BEGAN} || '","' || ${ENDS} || '"]', ',"0","1"]')`;
  const claims = query.hasAmounts ? sql`case when ${TELLS_CHARGE} then ${even} else '' end` : sql`''`;
  const columns = sql`resources, ${BEGAN} as began, ${ENDS} as ends,
    case when ${IS_EARLY} then ended_at / ${MICROSECONDS} else ${ENDS} end as ended,
    case when ${IS_EARLY} then case when ${IS_UNDONE} then null else 1 end else 0 end as early,
    ${claims} as taken`;
  return sql<LeaseGroup>`
    select project_id, user_id, cast(part as bigint) as part, resources, taken as claims,
      case when part is null then number end as odd,
      cast(count(*) as bigint) as leases,
      cast(sum(case when ended > began then ended - began else 0 end) as bigint) as run,
      cast(sum(early) as bigint) as early,
      cast(sum(early * (ends - case when ended > began then ended else began end)) as bigint) as unused
    from ${counted(dialect, query, range, columns)}
    where part is null or early is not null
    group by project_id, resources, taken, part, user_id, case when part is null then number end`;
}

function chargeGroups(dialect: Dialect, query: PieceQuery, range: RowRange): RawBuilder<ChargeGroup> {
  // In this join order, since there are fewer leases than entries. Otherwise PostgreSQL would read all
  // entries.
  const own = sql`entries.lease = counted.number`;
  const entries =
    dialect === 'sqlite'
      ? sql`cross join entries on ${own}`
      : sql`cross join lateral (select * from entries where ${own} offset 0) as entries`;
  return sql<ChargeGroup>`
    select counted.project_id as project_id, user_id, cast(part as bigint) as part, account,
      cast(sum(delta / ${sql.lit(HALF)}) as text) as high, cast(sum(delta % ${sql.lit(HALF)}) as text) as low
    from ${counted(dialect, query, range, sql`1 as one`, sql`not ${TELLS_CHARGE}`)}
    ${entries}
    where part is not null and account like 'usage!_budget/%' escape '!'
    group by counted.project_id, user_id, part, account`;
}

export function otherLeases(
  { database: { queries, dialect } }: Ledger,
  numbers: readonly bigint[],
): Work<OtherLease[]> {
  const query = sql<OtherLease>`
    select project_id, ${sql.join(CHARGED.map((column) => sql.ref(column)))},
      cast(case when ${IS_EARLY} then case when ${IS_UNDONE} then 1 else 0 end else 0 end as bigint) as undone
    from leases where ${isAmong(dialect, 'id', numbers)}`;
  return rows(query.compile(queries));
}
