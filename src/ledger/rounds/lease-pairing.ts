/** Pairs the leases of the ledger with those of Blazar's list. */

import type { Instant } from '../../lease/dates.ts';
import type { Reservation } from '../../lease/lease.ts';
import { alternativesOf, chargedBy, most } from '../alternatives.ts';
import type { LeaseRow } from '../database/schema.ts';
import { demandOf, isComparable } from '../demand.ts';

/** A lease as Blazar lists it. `openstack reservation lease list` prints neither its owner nor its reservations. */
export interface ListedLease {
  readonly id: string;
  readonly name: string;
  readonly start: Instant;
  readonly end: Instant;
  readonly projectId: string | undefined;
  readonly userId: string | undefined;
  readonly reservations: readonly Reservation[] | undefined;
}

export interface Pairing {
  readonly pairs: readonly { readonly listed: ListedLease; readonly row: LeaseRow }[];
  /** Blazar has them; the ledger does not. */
  readonly unknown: readonly ListedLease[];
  /** Each may be one of several rows of different owners. */
  readonly unclear: readonly ListedLease[];
  /** The ledger has them open; Blazar does not have them. */
  readonly absent: readonly LeaseRow[];
}

/**
 * By id. A row without an id pairs by its start, and by owner and reservations where the list has them, rows with the same end first.
 * Names mean nothing, since Blazar renames leases. Of several candidates, the dearest row pairs: the rest is released, and must not
 * be what an existing lease takes.
 */
export function pairLeases(listed: readonly ListedLease[], rows: readonly LeaseRow[]): Pairing {
  const byId = new Map(rows.flatMap((row) => (row.lease_id === null ? [] : [[row.lease_id, row] as const])));
  const pairs = listed.flatMap((lease) => {
    const row = byId.get(lease.id);
    return row === undefined ? [] : [{ listed: lease, row }];
  });
  const nameless = new Map<bigint, LeaseRow[]>();
  for (const row of rows.filter(({ lease_id, state }) => lease_id === null && state === 'open')) {
    for (const start of new Set(alternativesOf(row).map((one) => one.start))) {
      nameless.set(start, [...(nameless.get(start) ?? []), row]);
    }
  }
  const taken = new Set(pairs.map(({ row }) => row.id));
  const unclear: ListedLease[] = [];
  let rest = listed.filter(({ id }) => !byId.has(id));
  for (const [sameEnd, sameDemand] of [
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ]) {
    rest = rest.filter((lease) => {
      const candidates = (nameless.get(lease.start) ?? []).filter(
        (row) =>
          !taken.has(row.id) &&
          mayBe(row, lease) &&
          (!sameEnd || alternativesOf(row).some(({ end }) => end === lease.end)) &&
          (!sameDemand || fits(row, lease)),
      );
      const [first] = candidates;
      if (first === undefined) {
        return true;
      }
      const isOneOwners = candidates.every(
        (row) => row.project_id === first.project_id && row.user_id === first.user_id,
      );
      const row = isOneOwners ? dearest(candidates) : undefined;
      if (row === undefined) {
        unclear.push(lease);
        return false;
      }
      taken.add(row.id);
      pairs.push({ listed: lease, row });
      return false;
    });
  }
  const kept = new Set(unclear.map(({ start }) => start));
  const absent = rows.filter(
    (row) =>
      row.state === 'open' &&
      !taken.has(row.id) &&
      (row.lease_id !== null || !alternativesOf(row).some(({ start }) => kept.has(start))),
  );
  return { pairs, unknown: rest, unclear, absent };
}

function mayBe(row: LeaseRow, { projectId, userId }: ListedLease): boolean {
  return (projectId ?? row.project_id) === row.project_id && (userId ?? row.user_id) === row.user_id;
}

/** Whether a row may reserve what the list says. Unknown reservations match. */
export function fits(row: LeaseRow, { reservations }: ListedLease): boolean {
  if (reservations === undefined) {
    return true;
  }
  const listed = demandOf(reservations);
  return alternativesOf(row).some(({ demand }) => demand === listed || !isComparable(demand));
}

/** `undefined` when no row takes the most of every account. */
function dearest(rows: readonly LeaseRow[]): LeaseRow | undefined {
  const charged = rows.map((row) => ({ row, charge: chargedBy(alternativesOf(row)) }));
  const total = most(charged.map(({ charge }) => charge));
  return charged.find(({ charge }) =>
    [...total].every(([account, amount]) => (charge.get(account) ?? 0n) === amount),
  )?.row;
}
