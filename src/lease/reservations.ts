/** The reservations of a lease, after an update and while one is under way, and their sizes. */
import { isDeepStrictEqual } from 'node:util';
import { type Lease, leaseEnd, leaseStart, type Reservation } from './lease.ts';

/**
 * The reservations of a lease after an update. An update may leave out what it does not change: whole reservations, and
 * attributes of the reservations that it names by `id`.
 */
export function reservationsAfterUpdate(currentLease: Lease, newLease: Lease): Reservation[] {
  const current = currentLease.reservations ?? [];
  const wanted = newLease.reservations ?? [];
  // A map, not a search: both lists come from outside, and comparing two long ones would occupy the process.
  const currentById = new Map<unknown, Reservation>();
  for (const reservation of current) {
    const { id } = reservation;
    if (id !== undefined && !currentById.has(id)) {
      currentById.set(id, reservation);
    }
  }
  const wantedIds = new Set<unknown>(wanted.map(({ id }) => id));
  return [
    ...wanted.map((reservation) => ({ ...currentById.get(reservation.id), ...reservation })),
    ...current.filter(({ id }) => id === undefined || !wantedIds.has(id)),
  ];
}

/**
 * An upper bound of the reservations that a failed update may leave behind: some are as before, some are updated, and some have
 * new hosts. Each has the larger count of the two, and the allocations of both.
 */
export function reservationsHalfway(currentLease: Lease, updated: readonly Reservation[]): Reservation[] {
  const current = byId(currentLease.reservations ?? []);
  return updated.map((reservation) => {
    const before = current.get(reservation.id);
    return before === undefined
      ? reservation
      : {
          ...reservation,
          min: larger(before.min, reservation.min),
          max: larger(before.max, reservation.max),
          amount: larger(before.amount, reservation.amount),
          allocations: [...(before.allocations ?? []), ...(reservation.allocations ?? [])],
        };
  });
}

/**
 * Whether an update keeps all reservations and their allocations. Blazar does so if the update changes no reservation and the new
 * dates are within the current ones; it then sends the same reservations in both leases.
 */
export function keepsReservations(currentLease: Lease, newLease: Lease): boolean {
  const [start, end] = [leaseStart(currentLease), leaseEnd(currentLease)];
  const isWithin =
    start !== undefined &&
    end !== undefined &&
    (leaseStart(newLease) ?? start) >= start &&
    (leaseEnd(newLease) ?? end) <= end;
  if (!isWithin) {
    return false;
  }
  const current = byId(currentLease.reservations ?? []);
  return (newLease.reservations ?? []).every((reservation) =>
    isDeepStrictEqual(reservation, current.get(reservation.id)),
  );
}

function byId(reservations: readonly Reservation[]): Map<unknown, Reservation> {
  return new Map(reservations.flatMap((one) => (one.id === undefined ? [] : [[one.id, one] as const])));
}

function larger(before: unknown, after: unknown): unknown {
  const [one, other] = [countOf(before), countOf(after)];
  return one !== undefined && (after === undefined || after === null || (other !== undefined && one > other))
    ? before
    : after;
}

/**
 * The most that a reservation may be given: `max` for hosts, `amount` for everything else, the larger if it has both, 1 for a
 * network. Blazar sends numbers, or texts if the user wrote texts. `undefined` if the reservation has no usable count.
 */
export function reservationSize({ resource_type, max, amount }: Reservation): number | undefined {
  const written = [max, amount].filter((one) => one !== undefined && one !== null);
  if (written.length === 0) {
    return resource_type === 'network' ? 1 : undefined;
  }
  const counts = written.map(countOf);
  return counts.includes(undefined) ? undefined : Math.max(...counts.filter((count) => count !== undefined));
}

/**
 * Whether Blazar accepts the counts of a reservation: whole numbers (a text is accepted as the amount of floating IPs), and `min`
 * not above `max`. Blazar asks for a decision before it validates an update, so requests may hold counts that it then refuses.
 */
export function hasSoundCounts({ resource_type, min, max, amount }: Reservation): boolean {
  const isText = typeof amount === 'string' && /^(?:0|[1-9]\d*)$/.test(amount);
  return (
    [min, max].every(isWholeOrMissing) &&
    (isWholeOrMissing(amount) || (isText && resource_type === 'virtual:floatingip')) &&
    !(typeof min === 'number' && typeof max === 'number' && min > max)
  );
}

function isWholeOrMissing(written: unknown): boolean {
  const isWhole = typeof written === 'number' && Number.isSafeInteger(written) && written >= 0;
  return written === undefined || written === null || isWhole;
}

function countOf(written: unknown): number | undefined {
  const count = typeof written === 'string' && /^\d+$/.test(written.trim()) ? Number(written) : written;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}
