import type { Lease, Reservation } from './lease.ts';

/**
 * The reservations of a lease as they will be after an update, which may leave out what it does not change: whole
 * reservations, and attributes of those that it names by their `id`.
 */
export function reservationsAfterUpdate(currentLease: Lease, newLease: Lease): Reservation[] {
  const current = currentLease.reservations ?? [];
  const wanted = newLease.reservations ?? [];
  const isWanted = ({ id }: Reservation) => id !== undefined && wanted.some((one) => one.id === id);
  return [
    ...wanted.map((reservation) => ({
      ...current.find(({ id }) => id !== undefined && id === reservation.id),
      ...reservation,
    })),
    ...current.filter((reservation) => !isWanted(reservation)),
  ];
}
