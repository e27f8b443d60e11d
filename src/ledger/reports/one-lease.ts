/** One lease of the ledger: its row, its dates, its reservations, and its charges. */
import type { Wait } from '../../base/deadline.ts';
import type { Reservation } from '../../lease/lease.ts';
import { alternativesOf } from '../accounting/alternatives.ts';
import { demandOf, OTHERS, resourcePeriods } from '../accounting/demand.ts';
import type { Ledger } from '../ledger.ts';
import { rows } from '../storage/database.ts';
import { isAmong } from '../storage/query-parts.ts';
import type { LeaseRow } from '../storage/schema.ts';
import { budgetAccounts, type LeaseRowView, rowViews } from './leases.ts';
import { reading } from './pages.ts';
import { type ListedRow, listedRow } from './reports.ts';

/** More than any id really has. */
const MOST_NAMESAKES = 20;

export interface RecordedLease extends ListedRow {
  readonly leaseId: string;
  /** As last requested. Microseconds of the epoch. */
  readonly end: bigint;
  readonly isEnded: boolean;
  /**
   * One reservation per type, with the type as its id. Reservations of the same type are summed; properties,
   * flavors and hosts are not stored. Empty = incomplete: recorded by an older version, or with more types
   * than the ledger stores.
   */
  readonly reservations: readonly (Reservation & { readonly resource_type: string })[];
}

/**
 * The leases with this id in Blazar, which may exist in several regions and projects, or the lease in this
 * row; newest first. `projects`: only these; `undefined` = all. @throws LedgerUnavailableError
 */
export async function leasesWithKey(
  ledger: Ledger,
  key: string | bigint,
  projects: readonly string[] | undefined,
  wait: Wait,
): Promise<ListedRow[]> {
  return (await rowsWithKey(ledger, key, projects, wait)).map(listedRow);
}

/** Like `leasesWithKey` for an id in Blazar, with the reservations. @throws LedgerUnavailableError */
export async function recordedLeases(
  ledger: Ledger,
  leaseId: string,
  projects: readonly string[] | undefined,
  wait: Wait,
): Promise<RecordedLease[]> {
  const found = await rowsWithKey(ledger, leaseId, projects, wait);
  return found.map((row) => recordedLease(row, leaseId, ledger.now()));
}

function rowsWithKey(
  ledger: Ledger,
  key: string | bigint,
  projects: readonly string[] | undefined,
  wait: Wait,
): Promise<LeaseRow[]> {
  const { queries, dialect } = ledger.database;
  const all = queries.selectFrom('leases').selectAll();
  let query = typeof key === 'bigint' ? all.where('id', '=', key) : all.where('lease_id', '=', key);
  if (projects !== undefined) {
    query = query.where(isAmong(dialect, 'project_id', projects));
  }
  const newest = query.orderBy('id', 'desc').limit(MOST_NAMESAKES);
  return reading(ledger, wait)(() => rows(newest.compile()));
}

/** A lease of the ledger with its charges, and the request that created it. @throws LedgerUnavailableError */
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

/** Values of `min` that are tried to find the recorded one. */
const MOST_MINS = 100;

function recordedLease(row: LeaseRow, leaseId: string, now: bigint): RecordedLease {
  const [asked] = alternativesOf(row);
  const { start, end, demand } = asked ?? { start: row.starts_at, end: row.ends_at, demand: row.demand };
  return {
    ...listedRow(row),
    leaseId,
    start,
    end,
    isEnded: row.state === 'ended' || row.ends_at <= now,
    reservations: reservationsOf(row, demand),
  };
}

function reservationsOf({ resources }: LeaseRow, demand: string): RecordedLease['reservations'] {
  const counts = [...(resourcePeriods(resources).at(-1)?.counts ?? [])];
  if (counts.some(([type]) => type === OTHERS)) {
    return [];
  }
  const withMin = (min: number) =>
    counts.map(([resource_type, count]) => ({
      id: resource_type,
      resource_type,
      ...(resource_type === 'physical:host' ? { min: Math.min(min, count), max: count } : { amount: count }),
    }));
  const hosts = counts.find(([type]) => type === 'physical:host')?.[1] ?? 1;
  // Found by comparing digests. Without a match, `min` is 1.
  for (let min = Math.min(hosts, MOST_MINS); min > 1; min -= 1) {
    if (demandOf(withMin(min)) === demand) {
      return withMin(min);
    }
  }
  return withMin(1);
}
