import { isDeepStrictEqual } from 'node:util';
import { type Lease, leaseEnd, leaseStart, type Reservation } from './lease.ts';

/**
 * The reservations of a lease as they will be after an update, which may leave out what it does not change: whole
 * reservations, and attributes of those that it names by their `id`.
 */
export function reservationsAfterUpdate(currentLease: Lease, newLease: Lease): Reservation[] {
  const current = currentLease.reservations ?? [];
  const wanted = newLease.reservations ?? [];
  // Looked up, not searched for: both lists come from outside, and two long ones would hold everybody up.
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
 * What a lease may be left with by an update that fails: some reservations as they were, others as they were to be, and hosts that
 * were found in between. Each has the larger count of both, and the allocations of both.
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
 * Whether an update leaves all reservations, and what was allocated to them, as they are. Blazar does so where it is to change none
 * of them and the lease is to be within the dates that it has; then it says of the new lease what it says of the current one.
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
 * How much a reservation may be given: `max` of hosts, `amount` of everything else, the larger one of both; a network is one.
 * Blazar sends numbers, and texts where the user has. `undefined` where it does not say.
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
 * Whether Blazar takes the counts of a reservation, and they say one thing: numbers, of floating IPs also as a text, and no `min` above
 * `max`. It asks before it looks at what an update changes, and refuses the rest afterwards.
 */
export function hasSoundCounts({ resource_type, min, max, amount }: Reservation): boolean {
  const isText = typeof amount === 'string' && /^(?:0|[1-9]\d*)$/.test(amount);
  return (
    [min, max].every(isWholeOrUnsaid) &&
    (isWholeOrUnsaid(amount) || (isText && resource_type === 'virtual:floatingip')) &&
    !(typeof min === 'number' && typeof max === 'number' && min > max)
  );
}

function isWholeOrUnsaid(written: unknown): boolean {
  const isWhole = typeof written === 'number' && Number.isSafeInteger(written) && written >= 0;
  return written === undefined || written === null || isWhole;
}

function countOf(written: unknown): number | undefined {
  const count = typeof written === 'string' && /^\d+$/.test(written.trim()) ? Number(written) : written;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}
