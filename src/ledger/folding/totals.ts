/** The totals of folded leases: how they are added to and taken from, and what they say. */
import { type Kysely, sql } from 'kysely';
import type { Wait } from '../../deadline.ts';
import type { Amount } from '../../filter/amount.ts';
import { type Database, rows, type Work } from '../database/database.ts';
import type { Tables } from '../database/schema.ts';
import type { Ledger } from '../ledger.ts';
import { recordsTable } from '../views/many.ts';
import { type FoldedLease, sumsOf } from './folded-lease.ts';

type Queries = Pick<Database, 'queries' | 'dialect'>;

/**
 * Adds leases of one project to its totals, or takes them away. Lock the project before. Resolves to whether the totals had as many leases and entries
 * as are taken away; if not, roll back.
 */
export function* addTotals(
  { queries, dialect }: Queries,
  { projectId, until, sign }: { projectId: string; until: bigint; sign: 1n | -1n },
  leases: readonly FoldedLease[],
): Work<boolean> {
  const byRegion = new Map<string, FoldedLease[]>();
  for (const folded of leases) {
    const others = byRegion.get(folded.lease.region);
    if (others === undefined) {
      byRegion.set(folded.lease.region, [folded]);
    } else {
      others.push(folded);
    }
  }
  for (const [region, some] of byRegion) {
    const entries = some.reduce((count, one) => count + one.entries.length, 0);
    const key = { project_id: projectId, region, until };
    const counts = { leases: sign * BigInt(some.length), entries: sign * BigInt(entries) };
    const [total] = yield* rows(
      queries
        .insertInto('folds')
        .values({ ...key, ...counts })
        .onConflict((conflict) =>
          conflict.columns(['project_id', 'region', 'until']).doUpdateSet((row) => ({
            leases: row('folds.leases', '+', counts.leases),
            entries: row('folds.entries', '+', counts.entries),
          })),
        )
        .returning(['leases', 'entries'])
        .compile(),
    );
    if (total === undefined || total.leases < 0n || total.entries < 0n) {
      return false;
    }
  }
  yield* rows(
    queries.deleteFrom('folds').where('project_id', '=', projectId).where('leases', '=', 0n).compile(),
  );
  yield* addBalances({ queries, dialect }, projectId, sumsOf(leases), sign);
  return true;
}

function* addBalances(
  { queries, dialect }: Queries,
  projectId: string,
  sums: ReadonlyMap<string, Amount>,
  sign: 1n | -1n,
): Work<void> {
  if (sums.size === 0) {
    return;
  }
  const table = recordsTable(
    dialect,
    [
      ['account', 'text'],
      ['amount', 'bigint'],
    ],
    [...sums].map(([account, amount]) => [account, sign * amount]),
  );
  const add = sql`
    insert into folded_balances (project_id, account, amount)
    select cast(${projectId} as text), account, amount from ${table} as added where true
    on conflict (project_id, account) do update set amount = folded_balances.amount + excluded.amount`;
  yield* rows(add.compile(queries));
  const empty = queries
    .deleteFrom('folded_balances')
    .where('project_id', '=', projectId)
    .where('amount', '=', 0n);
  yield* rows(empty.compile());
}

/** How much of a ledger is folded. */
export interface FoldedTotals {
  readonly leases: bigint;
  /** All of them had ended before: microseconds of the epoch; `undefined` = none is folded. */
  readonly until: bigint | undefined;
}

/** Of all projects, or of one. @throws LedgerUnavailableError */
export function foldedTotals(
  { database }: Ledger,
  projectId: string | undefined,
  wait: Wait,
): Promise<FoldedTotals> {
  return database.read(function* () {
    let query = database.queries
      .selectFrom('folds')
      .select(({ fn }) => [
        sql<bigint | null>`cast(sum(leases) as bigint)`.as('leases'),
        fn.max('until').as('until'),
      ]);
    if (projectId !== undefined) {
      query = query.where('project_id', '=', projectId);
    }
    const [total] = yield* rows(query.compile());
    return { leases: total?.leases ?? 0n, until: (total?.until as bigint | null | undefined) ?? undefined };
  }, wait);
}

/** Until when leases of a project may be folded, in microseconds of the epoch; 0 = none is. */
export function* foldedUntil(queries: Kysely<Tables>, projectId: string): Work<bigint> {
  const query = queries
    .selectFrom('folds')
    .select('until')
    .where('project_id', '=', projectId)
    .orderBy('until', 'desc')
    .limit(1);
  return (yield* rows(query.compile()))[0]?.until ?? 0n;
}
