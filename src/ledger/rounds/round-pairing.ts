/** Which row of the ledger is which lease of Blazar. */
import { breathing } from '../../breath.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { alternativesOf } from '../alternatives.ts';
import type { LeaseRow } from '../database/schema.ts';
import { demandOf, isComparable } from '../demand.ts';
import { ABSENT, type ShownLease } from './shown-lease.ts';

export interface RoundPairing {
  readonly pairs: readonly { readonly row: LeaseRow; readonly shown: ShownLease }[];
  /** Blazar has them; the ledger does not. */
  readonly unknown: readonly ShownLease[];
  /** The same, but Blazar is creating, changing or ending them. */
  readonly changing: readonly ShownLease[];
  /** The ledger has them open; Blazar does not have them. */
  readonly absent: readonly LeaseRow[];
}

/** Both clocks are those of one second; and our answer may be a moment older than Blazar's row. */
const SLACK = 2n * MICROSECONDS_PER_SECOND;

/**
 * By id, whoever Blazar says has it: users may give a lease to another project or user, and it stays charged to whoever asked for it.
 * A row without an id pairs by project, user, dates and reservations. Of several, the one that was recorded first: those that stay are the
 * youngest, so that a lease that Blazar is still building finds as many as were asked for. Names do not count, because Blazar renames
 * leases.
 *
 * One that was recorded after Blazar created the lease is another one. Where clocks are wrong that may be a mistake: then the lease is
 * recorded once more, and is charged twice until the row is released. It is never the reason to release one.
 */
export async function pairRows(
  rows: readonly LeaseRow[],
  listed: readonly ShownLease[],
): Promise<RoundPairing> {
  const breathe = breathing();
  const byId = new Map<string, LeaseRow[]>();
  const nameless = new Map<string, LeaseRow[]>();
  for (const row of rows) {
    if (row.lease_id !== null) {
      const same = byId.get(row.lease_id);
      if (same === undefined) {
        byId.set(row.lease_id, [row]);
      } else {
        same.push(row);
      }
    } else if (row.state === 'open') {
      for (const looks of looksOf(row)) {
        const alike = nameless.get(looks);
        if (alike === undefined) {
          nameless.set(looks, [row]);
        } else {
          alike.push(row);
        }
      }
    }
    await breathe();
  }
  const taken = new Set<bigint>();
  const pairs: { row: LeaseRow; shown: ShownLease }[] = [];
  const pair = (row: LeaseRow, shown: ShownLease) => {
    taken.add(row.id);
    pairs.push({ row, shown: { ...shown, projectId: row.project_id, userId: row.user_id } });
  };
  const rest: ShownLease[] = [];
  for (const shown of listed) {
    const row = ownRow(byId.get(shown.id) ?? [], shown);
    if (row === undefined) {
      rest.push(shown);
    } else {
      pair(row, shown);
    }
    await breathe();
  }
  for (const candidates of nameless.values()) {
    candidates.sort((a, b) => compared(a.id, b.id));
  }
  // As they were asked for, by Blazar's clock alone.
  rest.sort((a, b) => compared(a.createdAt ?? LATE, b.createdAt ?? LATE));
  const unpaired: ShownLease[] = [];
  for (const shown of rest) {
    const { projectId, userId, start, end, reservations } = shown;
    const whose = [projectId, userId, String(start), String(end)];
    const row =
      first(nameless.get(key(...whose, demandOf(reservations))), taken, shown) ??
      first(nameless.get(key(...whose)), taken, shown);
    if (row === undefined) {
      unpaired.push(shown);
    } else {
      pair(row, shown);
    }
    await breathe();
  }
  const absent = rows.filter(({ id, state }) => state === 'open' && !taken.has(id));
  return {
    pairs: pairs.filter(({ shown }) => !shown.isChanging),
    unknown: unpaired.filter(({ isChanging }) => !isChanging),
    changing: unpaired.filter(({ isChanging }) => isChanging),
    absent,
  };
}

/**
 * Of the rows with the id of a lease, that of the lease. Somebody who asks for a lease with the id of another one leaves a row, too, but
 * not one that Blazar has shown. After a lease was given to another project, changes of it may leave a second one.
 */
function ownRow(same: readonly LeaseRow[], { projectId, createdAt }: ShownLease): LeaseRow | undefined {
  const isOwn = ({ project_id }: LeaseRow) => project_id === projectId;
  const wasThere = ({ shown }: LeaseRow) => shown !== null && shown !== ABSENT;
  const possible = same.filter(
    (row) =>
      isOwn(row) ||
      (wasThere(row) &&
        // Not of an earlier lease with the id.
        (row.ended_at === null || (createdAt !== undefined && createdAt <= row.ended_at))),
  );
  const rank = (row: LeaseRow) =>
    (row.state === 'open' ? 4 : 0) + (wasThere(row) ? 2 : 0) + (isOwn(row) ? 1 : 0);
  return possible.sort((a, b) => rank(b) - rank(a) || compared(a.id, b.id))[0];
}

const LATE = 2n ** 62n;

/** Removes those that are taken. A younger one is not tried: then it is not the first that stays. */
function first(
  rows: LeaseRow[] | undefined,
  taken: ReadonlySet<bigint>,
  { createdAt }: ShownLease,
): LeaseRow | undefined {
  while (rows?.[0] !== undefined && taken.has(rows[0].id)) {
    rows.shift();
  }
  const row = rows?.[0];
  return row !== undefined && createdAt !== undefined && row.recorded_at > createdAt + SLACK
    ? undefined
    : row;
}

/** One key for each alternative. A row of the first version of the tables does not say what it reserves. */
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

function compared(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
