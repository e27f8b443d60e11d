/** The queries of a report of usage: what leases come to that lie wholly within one part of the time is summed up by the database. */
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
 * Leases that the database sums up at once. Others of the process wait for SQLite, which reads them twice, and has as many in its cache. Nobody waits
 * for PostgreSQL: of more leases, there are fewer groups for each, and its memory for a sort, 4 MB, still holds them.
 */
const PIECES: Readonly<Record<Dialect, number>> = { sqlite: 5000, postgresql: 20_000 };
/** Numbers are summed in two halves: SQLite fails when an intermediate sum overflows. */
const HALF = 2n ** 32n;

/** Leases whose totals are kept together: see `TotalsCache`. */
const BLOCK = 25_000;

export interface PieceQuery {
  /** `undefined` = of all projects. */
  readonly projectId: string | undefined;
  /** Where the parts of the time begin, and where the last one ends: seconds of the epoch, rising. */
  readonly edges: readonly bigint[];
  /** Whether projects are told apart, and users. */
  readonly byProject: boolean;
  readonly byUser: boolean;
  /** Whether amounts are wanted. */
  readonly hasAmounts: boolean;
}

/** Rows after one and up to another; `undefined` = there is no bound. */
export interface RowRange {
  readonly after: bigint | undefined;
  readonly last: bigint | undefined;
}

/** Leases of the same owner that reserve, and if the row tells it are charged, the same for each second. */
export interface LeaseGroup {
  readonly project_id: string;
  readonly user_id: string;
  /** Which part of the time they lie in. */
  readonly part: bigint;
  readonly resources: string;
  /** Their claims from the first one on a budget on; those for the whole lease are from 0 until 1. Empty = their entries tell what they are charged. */
  readonly claims: string;
  /** Of a single lease that must be looked at: its row. `null` = all is told here. */
  readonly odd: bigint | null;
  readonly leases: bigint;
  /** Seconds, as all here: until they have ended, or will. */
  readonly run: bigint;
  /** How many have ended before their end date, and what was left of their time then. */
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

/** One that must be looked at. `undone`: 1 = its recording was taken back. */
export type OtherLease = ChargedRow &
  Pick<LeaseRow, 'id' | 'project_id' | 'user_id'> & { readonly undone: bigint };

interface Piece {
  readonly groups: readonly LeaseGroup[];
  readonly charges: readonly ChargeGroup[];
  /** Those of `otherLeases`. */
  readonly odd: readonly bigint[];
  /** The last row of the piece; `undefined` = there are no more. */
  readonly last: bigint | undefined;
}

/** So many leases of the query, and what tells whether they are what they were. */
export interface Block {
  readonly range: RowRange;
  /** Changes with whatever a report says of one of them; budgets apart. */
  readonly checksum: string;
  /** Seconds in which all of them are. */
  readonly from: bigint;
  readonly until: bigint;
  /** Whether any of them may be in the time. */
  readonly mayCount: boolean;
}

/**
 * The revision of a lease rises whenever anything changes that a report says of it. It stays where it is noticed that a lease has ended by date, and
 * where that is taken back: neither changes a report.
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
  const [from, until] = [floor(found?.starts_at ?? 0n), ceil(found?.ends_at ?? 0n)];
  const [first = 0n, last = 0n] = [query.edges[0], query.edges.at(-1)];
  const mayCount = (until > first && from < last) || found?.moved !== 0n;
  return { range, checksum: found?.checksum ?? '', from, until, mayCount };
}

/** The next of a range: after one row. */
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
 * The row with which so many of a range end; `undefined` = there are not more. Of all projects, rows are numbered nearly without gaps: none has to be
 * read to find it.
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
/** The last word about it: that it was taken back. It was no lease. */
const IS_UNDONE = sql`(select operation from entries where entries.lease = leases.id order by entries.id desc limit 1) = 'undo'`;
/** See `tellsItsCharge`. One that has ended before it began is charged what its entries say. */
const TELLS_CHARGE = sql`(touched_at = recorded_at and (state = 'open' or coalesce(ended_at, 0) = ends_at))`;
/** It has reserved the same all the time: `recordedResources` begins with the last period. */
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
 * In which part of the time a lease lies wholly; null = in none, or it has reserved different things, or may have been moved, so that it may take something
 * at another time.
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

/** Those of the piece that may count. The limit is never reached: it has SQLite compute each column once. */
function counted(
  dialect: Dialect,
  query: PieceQuery,
  range: RowRange,
  columns: RawBuilder<unknown>,
  more: RawBuilder<unknown> = sql`1 = 1`,
): RawBuilder<unknown> {
  const { edges } = query;
  const [from = 0n, until = 0n] = [edges[0], edges.at(-1)];
  return sql`(
    select id as number, ${owner(query)}, ${partOf(query)} as part, ${columns}
    from leases where ${within(query, range)} and ${more} and
      (ends_at > ${instant(from)} and starts_at < ${instant(until)} or alternatives is not null)
    limit ${sql.lit(PIECES[dialect])}) as counted`;
}

function leaseGroups(dialect: Dialect, query: PieceQuery, range: RowRange): RawBuilder<LeaseGroup> {
  const position = sql`${sql.raw(dialect === 'sqlite' ? 'instr' : 'strpos')}(claims, '["usage_budget/')`;
  const onBudgets = sql`coalesce('[' || substr(claims, nullif(${position}, 0)), '[]')`;
  // A claim for the whole lease is the same text then, whenever the lease is.
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
  // In this order: there are fewer leases than entries. PostgreSQL would read all entries.
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
