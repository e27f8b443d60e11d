/** Which lease of the ledger is which of Blazar's. */

import type { Instant } from '../lease/dates.ts';
import type { Reservation } from '../lease/lease.ts';
import { alternativesOf, chargedBy, most } from './alternatives.ts';
import { demandOf, isComparable } from './demand.ts';
import type { LeaseRow } from './schema.ts';

/** A lease as Blazar lists it. `openstack reservation lease list` says neither whose it is nor what it reserves. */
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
  /** Blazar has them, and the ledger does not. */
  readonly unknown: readonly ListedLease[];
  /** Each may be one of several leases of different owners. */
  readonly unclear: readonly ListedLease[];
  /** The ledger takes them to be there, and Blazar does not have them. */
  readonly absent: readonly LeaseRow[];
}

/**
 * By id; a lease whose id the ledger does not know by its start, and by its owner and what it reserves where the list says it, those
 * with the same end first. A name tells nothing, since Blazar renames leases. Of several that may be a lease it is the dearest: what
 * is left is released, and must not be what a lease has that is there.
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

/** Whether a row reserves what the list says, as far as both say it. */
export function fits(row: LeaseRow, { reservations }: ListedLease): boolean {
  if (reservations === undefined) {
    return true;
  }
  const listed = demandOf(reservations);
  return alternativesOf(row).some(({ demand }) => demand === listed || !isComparable(demand));
}

/** `undefined` where none takes the most of everything. */
function dearest(rows: readonly LeaseRow[]): LeaseRow | undefined {
  const charged = rows.map((row) => ({ row, charge: chargedBy(alternativesOf(row)) }));
  const total = most(charged.map(({ charge }) => charge));
  return charged.find(({ charge }) =>
    [...total].every(([account, amount]) => (charge.get(account) ?? 0n) === amount),
  )?.row;
}
