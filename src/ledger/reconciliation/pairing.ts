/** Matches rows of the ledger with leases of Blazar. */

import { timedYield } from '../../base/yield-to-event-loop.ts';
import { type Amount, smaller } from '../../filter/claim.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { type Alternative, alternativesOf, chargedBy, most } from '../accounting/alternatives.ts';
import { demandOf, isComparable } from '../accounting/demand.ts';
import { addTo } from '../add-to.ts';
import type { LeaseRow } from '../storage/schema.ts';
import {
  ABSENT,
  begun,
  type ListedLease,
  type OverdueLease,
  type ShownLease,
  type WholeLease,
} from './leases.ts';

interface Pairing<Lease extends ListedLease> {
  readonly pairs: { readonly row: LeaseRow; readonly lease: Lease }[];
  /** In Blazar, not in the ledger. */
  readonly unknown: Lease[];
  /** Each matches several rows of different owners. */
  readonly unclear: Lease[];
  /** Open in the ledger, not in Blazar. */
  readonly absent: LeaseRow[];
}

/** Finds the row of a lease among the open, not `taken` rows without an id. */
type Search<Lease> = (lease: Lease, taken: ReadonlySet<bigint>) => LeaseRow | 'unclear' | undefined;

/** By id, then by each search in turn. Names are ignored, since Blazar renames leases. */
async function pair<Lease extends ListedLease>(
  rows: readonly LeaseRow[],
  listed: readonly Lease[],
  rowWithId: (same: readonly LeaseRow[], lease: Lease) => LeaseRow | undefined,
  searches: readonly Search<Lease>[],
): Promise<Pairing<Lease>> {
  const yieldIfDue = timedYield();
  const byId = new Map<string, LeaseRow[]>();
  for (const row of rows) {
    if (row.lease_id !== null) {
      addTo(byId, row.lease_id, row);
    }
    await yieldIfDue();
  }
  const taken = new Set<bigint>();
  const pairs: { row: LeaseRow; lease: Lease }[] = [];
  const unclear: Lease[] = [];
  let rest = listed;
  for (const search of [(lease: Lease) => rowWithId(byId.get(lease.id) ?? [], lease), ...searches]) {
    const next: Lease[] = [];
    for (const lease of rest) {
      const row = search(lease, taken);
      if (row === undefined) {
        next.push(lease);
      } else if (row === 'unclear') {
        unclear.push(lease);
      } else {
        taken.add(row.id);
        pairs.push({ row, lease });
      }
      await yieldIfDue();
    }
    rest = next;
  }
  const absent = rows.filter(({ id, state }) => state === 'open' && !taken.has(id));
  return { pairs, unknown: [...rest], unclear, absent };
}

/**
 * A listed lease matches by start, and by owner and reservations if the list has them; rows with the same end
 * come first. Of several candidates, the most expensive row matches: the others are released, and must not hold what
 * an existing lease takes.
 */
export async function pairListed(
  listed: readonly ListedLease[],
  rows: readonly LeaseRow[],
): Promise<Pairing<ListedLease>> {
  const byStart = new Map<bigint, Alike[]>();
  const byLooks = new Map<string, Alike>();
  for (const row of rows.filter(isNameless)) {
    const { project_id, user_id, starts_at, ends_at, demand, claims, alternatives } = row;
    const dates = [String(starts_at), String(ends_at)];
    const looks = key(project_id, user_id, ...dates, demand, claims, alternatives ?? '');
    const known = byLooks.get(looks);
    if (known !== undefined) {
      known.rows.push(row);
      continue;
    }
    const possible = alternativesOf(row);
    const alike = { rows: [row], alternatives: possible, charge: chargedBy(possible) };
    byLooks.set(looks, alike);
    for (const start of new Set(possible.map((one) => one.start))) {
      addTo(byStart, start, alike);
    }
  }
  const searches = [
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ].map(
    ([sameEnd, sameDemand]): Search<ListedLease> =>
      (lease, taken) => {
        const fits = sameDemand ? fitting(lease) : () => true;
        const candidates = (byStart.get(lease.start) ?? []).flatMap((alike) => {
          const [row] = untaken(alike.rows, taken);
          const { alternatives, charge } = alike;
          const isFitting =
            row !== undefined &&
            mayBelong(row, lease) &&
            (!sameEnd || alternatives.some(({ end }) => end === lease.end)) &&
            fits(alternatives);
          return isFitting ? [{ row, charge }] : [];
        });
        const [first] = candidates;
        if (first === undefined) {
          return undefined;
        }
        const isOneOwners = candidates.every(
          ({ row }) => row.project_id === first.row.project_id && row.user_id === first.row.user_id,
        );
        return (isOneOwners ? mostExpensive(candidates) : undefined) ?? 'unclear';
      },
  );
  const pairing = await pair(rows, listed, (same, lease) => byRank(same, lease)[0], searches);
  const kept = new Set(pairing.unclear.map(({ start }) => start));
  const absent = pairing.absent.filter(
    (row) => row.lease_id !== null || !alternativesOf(row).some(({ start }) => kept.has(start)),
  );
  return { ...pairing, absent };
}

/** Both clocks have a resolution of a second, and our response may be slightly older than Blazar's row. */
const SLACK = 2n * MICROSECONDS_PER_SECOND;

/**
 * An observed lease matches by id, whatever owner Blazar shows: users may give a lease to another project or
 * user, and it stays charged to its original owner. A row without an id matches by project, user, dates and
 * reservations. The oldest of several rows matches. The youngest remain, so that leases that Blazar is still
 * building keep a row for each request.
 *
 * A row recorded after Blazar created the lease belongs to another lease. With wrong clocks that may be an
 * error: the lease is then recorded again and charged twice until the row is released. It is never a reason
 * to release a row.
 */
export async function pairShown(
  shown: readonly ShownLease[],
  rows: readonly LeaseRow[],
): Promise<Pairing<ShownLease>> {
  const byLooks = new Map<string, LeaseRow[]>();
  const yieldIfDue = timedYield();
  for (const row of rows.filter(isNameless)) {
    for (const looks of looksOf(row)) {
      addTo(byLooks, looks, row);
    }
    await yieldIfDue();
  }
  for (const candidates of byLooks.values()) {
    candidates.sort((a, b) => Number(a.id - b.id));
  }
  const search: Search<ShownLease> = (lease, taken) => {
    const { projectId, userId, start, end, reservations } = lease;
    const whose = [projectId, userId, String(start), String(end)];
    return (
      first(byLooks.get(key(...whose, demandOf(reservations))), taken, lease) ??
      first(byLooks.get(key(...whose)), taken, lease)
    );
  };
  // In the order of creation, by Blazar's clock alone.
  const inOrder = shown.toSorted((a, b) => Number((a.createdAt ?? LATE) - (b.createdAt ?? LATE)));
  const pairing = await pair(rows, inOrder, ownRow, [search]);
  const pairs = pairing.pairs.map(({ row, lease }) => ({
    row,
    lease: begun(lease, smaller(row.starts_at, row.touched_at)),
  }));
  return keepingOwners({ ...pairing, pairs });
}

/**
 * Of the rows with the id of a lease, the row of that lease. A request for a new lease with the id of another
 * one leaves a row, too, but not one that Blazar has shown. After a lease was given to another project,
 * changes of it may leave a second row.
 */
function ownRow(same: readonly LeaseRow[], lease: ShownLease | OverdueLease): LeaseRow | undefined {
  const possible = same.filter(
    (row) =>
      row.project_id === lease.projectId ||
      (wasThere(row) &&
        // Not a row of an earlier lease with the same id.
        (row.ended_at === null || (lease.createdAt !== undefined && lease.createdAt <= row.ended_at))),
  );
  return byRank(possible, lease)[0];
}

/** By id: Blazar has shown a lease before its end. It makes no difference whether that end was processed. */
export async function pairOverdue(
  overdue: readonly OverdueLease[],
  rows: readonly LeaseRow[],
): Promise<Pairing<OverdueLease>> {
  const ownOf = (same: readonly LeaseRow[], lease: OverdueLease) => {
    const own = ownRow(
      same.map((row) => ({ ...row, state: 'ended' })),
      lease,
    );
    return same.find(({ id }) => id === own?.id);
  };
  return keepingOwners(await pair(rows, overdue, ownOf, []));
}

/** Users can write whose a lease is: it stays with the owner of its row. */
function keepingOwners<Lease extends WholeLease>(pairing: Pairing<Lease>): Pairing<Lease> {
  const pairs = pairing.pairs.map(({ row, lease }) => ({
    row,
    lease: { ...lease, projectId: row.project_id, userId: row.user_id },
  }));
  return { ...pairing, pairs };
}

/** The most likely row of a lease comes first. */
function byRank(same: readonly LeaseRow[], { projectId }: ListedLease): LeaseRow[] {
  const rank = (row: LeaseRow) =>
    (row.state === 'open' ? 4 : 0) + (wasThere(row) ? 2 : 0) + (row.project_id === projectId ? 1 : 0);
  return same.toSorted((a, b) => rank(b) - rank(a) || Number(a.id - b.id));
}

function wasThere({ shown }: LeaseRow): boolean {
  return shown !== null && shown !== ABSENT;
}

function isNameless({ lease_id, state }: LeaseRow): boolean {
  return lease_id === null && state === 'open';
}

function mayBelong(row: LeaseRow, { projectId, userId }: ListedLease): boolean {
  return (projectId ?? row.project_id) === row.project_id && (userId ?? row.user_id) === row.user_id;
}

/** Whether the reservations of one of the alternatives may be those of the list. Unknown reservations match. */
export function fitting({ reservations }: ListedLease): (alternatives: readonly Alternative[]) => boolean {
  if (reservations === undefined) {
    return () => true;
  }
  const listed = demandOf(reservations);
  return (alternatives) => alternatives.some(({ demand }) => demand === listed || !isComparable(demand));
}

/** Rows that differ only in their ids and names: many leases may begin in the same minute. */
interface Alike {
  readonly rows: LeaseRow[];
  readonly alternatives: readonly Alternative[];
  readonly charge: ReadonlyMap<string, Amount>;
}

/** `undefined` = no row takes the most of every account. */
function mostExpensive(
  candidates: readonly { readonly row: LeaseRow; readonly charge: ReadonlyMap<string, Amount> }[],
): LeaseRow | undefined {
  const total = most(candidates.map(({ charge }) => charge));
  return candidates.find(({ charge }) =>
    [...total].every(([account, amount]) => (charge.get(account) ?? 0n) === amount),
  )?.row;
}

const LATE = 2n ** 62n;

/** The first row that is not taken, unless it was recorded after the lease was created. */
function first(
  rows: LeaseRow[] | undefined,
  taken: ReadonlySet<bigint>,
  { createdAt }: ShownLease,
): LeaseRow | undefined {
  const [row] = untaken(rows ?? [], taken);
  return row !== undefined && createdAt !== undefined && row.recorded_at > createdAt + SLACK
    ? undefined
    : row;
}

/** Removes taken rows at the beginning. */
function untaken(rows: LeaseRow[], taken: ReadonlySet<bigint>): readonly LeaseRow[] {
  while (rows[0] !== undefined && taken.has(rows[0].id)) {
    rows.shift();
  }
  return rows;
}

/** One key per alternative. Rows of the first version of the tables do not contain their reservations. */
function looksOf(row: LeaseRow): Set<string> {
  return new Set(
    alternativesOf(row).map(({ start, end, demand }) => {
      const whose = [row.project_id, row.user_id, String(start), String(end)];
      return isComparable(demand) ? key(...whose, demand) : key(...whose);
    }),
  );
}

function key(...parts: readonly string[]): string {
  return JSON.stringify(parts);
}
