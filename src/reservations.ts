import type { Lease, Reservation } from './lease.ts';

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

function countOf(written: unknown): number | undefined {
  const count = typeof written === 'string' && /^\d+$/.test(written.trim()) ? Number(written) : written;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}
