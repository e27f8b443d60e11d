/** Leases, and the requests about them. The names are Blazar's; attributes that this package does not know pass through. */

import { isDeepStrictEqual } from 'node:util';
import { type DateValue, type Instant, toInstant } from './dates.ts';
import { shownBy } from './read-only.ts';

/** Of one lease. Real leases have a few. */
export const MAX_RESERVATIONS = 500;
/** Of all reservations of a lease together: enough for ten thousand hosts, reserved twice. */
export const MAX_ALLOCATIONS = 20_000;
/** In characters, for ids of users and projects, which appear in logs and messages. Keystone's have at most 255. */
export const ID_LENGTH = 65_536;

/** The user who sent the request, as Blazar describes them. */
export interface Context {
  readonly user_id: string;
  readonly project_id: string;
  readonly auth_url?: string | null;
  readonly region_name?: string | null;
  readonly [attribute: string]: unknown;
}

/** One host, address, … that a reservation was given. The resource plug-in defines its attributes. */
export type Allocation = Readonly<Record<string, unknown>>;

export interface Reservation {
  /** `physical:host`, `virtual:instance`, `flavor:instance`, `virtual:floatingip`, `network`, … */
  readonly resource_type?: string;
  readonly allocations?: readonly Allocation[];
  readonly [attribute: string]: unknown;
}

/**
 * A lease. Only dates and reservations have a known form. The new lease of an update may lack what the caller does not
 * change: look it up in the current lease.
 */
export interface Lease {
  readonly start_date?: DateValue;
  readonly end_date?: DateValue;
  readonly reservations?: readonly Reservation[];
  readonly [attribute: string]: unknown;
}

export interface CreateRequest {
  readonly context: Context;
  readonly lease: Lease;
}

export interface UpdateRequest {
  readonly context: Context;
  readonly currentLease: Lease;
  readonly lease: Lease;
}

export interface EndRequest {
  readonly context: Context;
  readonly lease: Lease;
}

/** The start of the lease; `undefined` if it has none. */
export function leaseStart(lease: Lease): Instant | undefined {
  return toInstant(shownBy(lease).start_date);
}

/** The end of the lease. Blazar sends `end_date`; `end_time`, from Blazar's documentation, counts if there is no `end_date`. */
export function leaseEnd(lease: Lease): Instant | undefined {
  const { end_date, end_time } = shownBy(lease);
  return toInstant(end_date ?? end_time);
}

/**
 * The reservations of a lease after an update. An update may leave out what it does not change: whole reservations, and
 * attributes of the reservations that it names by `id`.
 */
export function reservationsAfterUpdate(currentLease: Lease, newLease: Lease): Reservation[] {
  const current = currentLease.reservations ?? [];
  const wanted = newLease.reservations ?? [];
  const currentById = byId(current);
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

/** A map, not a search: both lists come from outside, and comparing two long ones would occupy the process. */
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
  if ((max ?? amount ?? undefined) === undefined) {
    return resource_type === 'network' ? 1 : undefined;
  }
  const most = countOf(max ?? 0);
  const count = countOf(amount ?? 0);
  return most === undefined || count === undefined ? undefined : Math.max(most, count);
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
