/** One lease of the ledger: which row it is, and what it is charged. */
import { sql } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import type { Ledger } from '../ledger.ts';
import { rows } from '../storage/database.ts';
import { textsTable } from '../storage/query-parts.ts';
import { budgetAccounts, type LeaseRowView, rowViews } from './leases.ts';
import { reading } from './pages.ts';
import { type ListedRow, listedRow } from './reports.ts';

/** More than anybody has with one id. */
const MOST_NAMESAKES = 20;

/**
 * The leases with this id of Blazar, which may exist in several regions and projects, or the one in this row; the newest first. `projects`: only
 * of these; `undefined` = of all. @throws LedgerUnavailableError
 */
export function leasesWithKey(
  ledger: Ledger,
  key: string | bigint,
  projects: readonly string[] | undefined,
  wait: Wait,
): Promise<ListedRow[]> {
  const { queries, dialect } = ledger.database;
  return reading(
    ledger,
    wait,
  )(function* () {
    const all = queries.selectFrom('leases').selectAll();
    let query = typeof key === 'bigint' ? all.where('id', '=', key) : all.where('lease_id', '=', key);
    if (projects !== undefined) {
      const listed = textsTable(dialect, projects);
      query = query.where('project_id', 'in', sql<string>`(select value from ${listed})`);
    }
    return (yield* rows(query.orderBy('id', 'desc').limit(MOST_NAMESAKES).compile())).map(listedRow);
  });
}

/** A lease of the ledger with its charges, and the request that has created it. @throws LedgerUnavailableError */
export async function leaseWithCharges(
  ledger: Ledger,
  { row, projectId }: Pick<ListedRow, 'row' | 'projectId'>,
  wait: Wait,
): Promise<{ readonly lease: LeaseRowView; readonly createdBy: string | null } | undefined> {
  const read = reading(ledger, wait);
  const budgets = await read(() => budgetAccounts(ledger, projectId));
  const [lease] = await read(() => rowViews(ledger, budgets, [row]));
  const first = ledger.database.queries
    .selectFrom('entries')
    .select('request_id')
    .where('lease', '=', row)
    .where('operation', '=', 'create')
    .orderBy('id')
    .limit(1);
  const [created] = await read(() => rows(first.compile()));
  return lease && { lease, createdBy: created?.request_id ?? null };
}
