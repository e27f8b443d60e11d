/** One lease as the ledger knows it: its dates, and how much of which types it reserves. */
import type { Wait } from '../../base/deadline.ts';
import type { Reservation } from '../../lease/lease.ts';
import { alternativesOf } from '../accounting/alternatives.ts';
import { demandOf, OTHERS, resourcePeriods } from '../accounting/demand.ts';
import type { Ledger } from '../ledger.ts';
import { rows } from '../storage/database.ts';
import type { LeaseRow } from '../storage/schema.ts';
import { type ListedRow, listedRow } from './reports.ts';

export interface RecordedLease extends ListedRow {
  readonly leaseId: string;
  /** As last requested. Microseconds of the epoch. */
  readonly end: bigint;
  readonly isEnded: boolean;
  /**
   * One for each type, which is its id here, with its number: that of several reservations of a type is added up, and properties, flavours and
   * hosts are not kept. Empty = nobody knows all: it was recorded by an older version, or has more types than the ledger keeps.
   */
  readonly reservations: readonly (Reservation & { readonly resource_type: string })[];
}

/** Of one id: regions and projects may have the same. */
const MOST = 20;
/** How many values of `min` are tried to find the one that was recorded. */
const MOST_MINS = 100;

/** Those with an id of Blazar's in some projects, the newest first. `projectIds`: `undefined` = in all. @throws LedgerUnavailableError */
export function recordedLeases(
  ledger: Ledger,
  leaseId: string,
  projectIds: readonly string[] | undefined,
  wait: Wait,
): Promise<RecordedLease[]> {
  return ledger.read(
    'read',
    function* () {
      let query = ledger.database.queries.selectFrom('leases').selectAll().where('lease_id', '=', leaseId);
      if (projectIds !== undefined) {
        query = query.where('project_id', 'in', projectIds);
      }
      return (yield* rows(query.orderBy('id', 'desc').limit(MOST).compile())).map((row) =>
        recordedLease(row, leaseId, ledger.now()),
      );
    },
    wait,
  );
}

function recordedLease(row: LeaseRow, leaseId: string, now: bigint): RecordedLease {
  const [asked] = alternativesOf(row);
  const { start, end, demand } = asked ?? { start: row.starts_at, end: row.ends_at, demand: row.demand };
  return {
    ...{ ...listedRow(row), leaseId, start, end },
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
      ...{ id: resource_type, resource_type },
      ...(resource_type === 'physical:host' ? { min: Math.min(min, count), max: count } : { amount: count }),
    }));
  const hosts = counts.find(([type]) => type === 'physical:host')?.[1] ?? 1;
  // Its digest tells. Where it does not, any number of hosts may do.
  for (let min = Math.min(hosts, MOST_MINS); min > 1; min -= 1) {
    if (demandOf(withMin(min)) === demand) {
      return withMin(min);
    }
  }
  return withMin(1);
}
