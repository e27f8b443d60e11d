/** The totals of folded leases: adding, subtracting and reading them. */

import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Amount } from '../../filter/claim.ts';
import { addTo } from '../add-to.ts';
import type { Ledger } from '../ledger.ts';
import { reading } from '../reports/pages.ts';
import { type Database, rows, type Work } from '../storage/database.ts';
import { recordsTable } from '../storage/query-parts.ts';
import { type FoldedLease, sumsOf } from './folded-lease.ts';

type Queries = Pick<Database, 'queries' | 'dialect'>;

/**
 * Adds leases of one project to its totals, or subtracts them. The caller has locked the project. Resolves to
 * whether the totals had at least as many leases and entries as were subtracted; if not, roll back.
 */
export function* addTotals(
  { queries, dialect }: Queries,
  { projectId, until, sign }: { projectId: string; until: bigint; sign: 1n | -1n },
  leases: readonly FoldedLease[],
): Work<boolean> {
  const byRegion = new Map<string, FoldedLease[]>();
  for (const folded of leases) {
    addTo(byRegion, folded.lease.region, folded);
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

/** What a ledger or a project has folded, which is missing from lists of its leases and entries. */
export interface FoldedTotals {
  readonly leases: bigint;
  /** All of them ended before this time: microseconds of the epoch. */
  readonly until: bigint;
}

/** `undefined` = nothing is folded. @throws LedgerUnavailableError */
export function foldedOfProject(
  ledger: Ledger,
  projectId: string,
  wait: Wait,
): Promise<FoldedTotals | undefined> {
  return reading(ledger, wait)(() => foldedOf(ledger.database, projectId));
}

/** All projects. `undefined` = nothing is folded. @throws LedgerUnavailableError */
export function foldedOfLedger(ledger: Ledger, wait: Wait): Promise<FoldedTotals | undefined> {
  return reading(ledger, wait)(() => foldedOf(ledger.database, undefined));
}

/** PostgreSQL returns another type for sums. */
const sumOfLeases = sql<bigint | null>`cast(sum(leases) as bigint)`;

/** Number of leases that were folded at a date and not restored. @throws LedgerUnavailableError */
export async function foldedAt(ledger: Ledger, until: bigint, wait: Wait): Promise<bigint> {
  const query = ledger.database.queries
    .selectFrom('folds')
    .select(sumOfLeases.as('leases'))
    .where('until', '=', until);
  return (await ledger.read('read', () => rows(query.compile()), wait))[0]?.leases ?? 0n;
}

/** Within a transaction. `projectId`: `undefined` = all projects. */
export function* foldedOf(
  { queries }: Pick<Database, 'queries'>,
  projectId: string | undefined,
): Work<FoldedTotals | undefined> {
  const all = queries
    .selectFrom('folds')
    .select(({ fn }) => [sumOfLeases.as('leases'), fn.max<bigint | null>('until').as('until')]);
  const query = projectId === undefined ? all : all.where('project_id', '=', projectId);
  const [{ leases, until } = { leases: null, until: null }] = yield* rows(query.compile());
  return leases === null || until === null ? undefined : { leases, until };
}
