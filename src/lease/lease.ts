/** Leases, and requests about them. Names are Blazar's; unknown attributes pass through. */

import { isDeepStrictEqual } from 'node:util';
import { type DateValue, type Instant, leaseEnd, leaseStart, toInstant } from './dates.ts';

/** Per lease. Real leases have a few. */
export const MAX_RESERVATIONS = 500;
/** Per lease, over all its reservations: enough for ten thousand hosts, reserved twice. */
export const MAX_ALLOCATIONS = 20_000;
/** In characters, for user and project ids, which appear in logs and messages. Keystone's have at most 255. */
export const ID_LENGTH = 65_536;

/** The user who sent the request, in Blazar's form. */
export interface Context {
  readonly user_id: string;
  readonly project_id: string;
  readonly auth_url?: string | null;
  readonly region_name?: string | null;
  readonly [attribute: string]: unknown;
}

/** A host, address, … assigned to a reservation. The resource plug-in defines its attributes. */
export type Allocation = Readonly<Record<string, unknown>>;

export interface Reservation {
  /** `physical:host`, `virtual:instance`, `flavor:instance`, `virtual:floatingip`, `network`, … */
  readonly resource_type?: string;
  readonly allocations?: readonly Allocation[];
  readonly [attribute: string]: unknown;
}

/**
 * A lease. Only dates and reservations have a known form. The new lease of an update may omit what does not
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

/**
 * When a lease with this end date ends. A change that Blazar could not finish may have moved the event that ends
 * the lease, and not its date: a lease that runs keeps its resources until the event. The lease is
 * one that Blazar shows, never one that a user asks for.
 */
export function endInBlazar(
  date: Instant,
  { events, reservations }: { readonly events?: unknown; readonly reservations?: Lease['reservations'] },
): Instant {
  if (!Array.isArray(events) || reservations?.some(isInUse) !== true) {
    return date;
  }
  return events.reduce((latest: Instant, event: unknown) => {
    const { event_type, status, time } = (event ?? {}) as Readonly<Record<string, unknown>>;
    const isDue = event_type === 'end_lease' && (status === 'UNDONE' || status === 'IN_PROGRESS');
    const at = isDue ? toInstant(time) : undefined;
    return at !== undefined && at > latest ? at : latest;
  }, date);
}

/** Whether a reservation that Blazar shows has started and not ended. Users cannot write its status. */
export function isInUse({ status }: Reservation): boolean {
  return status === 'active' || status === 'error';
}

/** Of a lease that Blazar shows. Users may set its status, which Blazar corrects later, but not the status of a reservation. */
export function isTerminated({
  status,
  reservations = [],
}: Readonly<{ status?: unknown; reservations?: readonly Reservation[] | undefined }>): boolean {
  return status === 'TERMINATED' && reservations.every((one) => (one.status ?? 'deleted') === 'deleted');
}

/** A lease after an update: a date that the update lacks, or has as null, is the current one. */
export function leaseAfterUpdate(currentLease: Lease, newLease: Lease): Lease {
  const start_date = newLease.start_date ?? currentLease.start_date;
  const isEndNew = leaseEnd(newLease) !== undefined;
  const { end_date, end_time } = isEndNew ? newLease : currentLease;
  return { ...currentLease, ...newLease, start_date, end_date, end_time } as Lease;
}

/**
 * The reservations of a lease after an update. An update may omit unchanged reservations, and unchanged
 * attributes of reservations that it names by `id`.
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
 * After this time, Blazar has made a change, or has failed. In microseconds. It changes one reservation after another,
 * and Nova moves one host after another.
 */
export const MAKING = 60_000_000n;

/** For the user who asks for a change while another one may be being made. */
export const IS_CHANGING = 'Another change of this lease was allowed a moment ago: try again in a minute.';

/**
 * An upper bound of the reservations after a failed update: some unchanged, some updated, some with new
 * hosts. Each has the larger of its two counts, and both sets of allocations. Those of another type than before
 * are followed, at the end, by what they were: Blazar refuses to change a type when it comes to it, and keeps
 * what it has changed by then.
 */
export function reservationsHalfway(currentLease: Lease, updated: readonly Reservation[]): Reservation[] {
  const current = byId(currentLease.reservations ?? []);
  const ofOtherType: Reservation[] = [];
  const merged = updated.map((reservation) => {
    const before = current.get(reservation.id);
    if (before === undefined) {
      return reservation;
    }
    if (before.resource_type !== reservation.resource_type) {
      ofOtherType.push(before);
      return reservation;
    }
    return {
      ...reservation,
      min: larger(before.min, reservation.min),
      max: larger(before.max, reservation.max),
      amount: larger(before.amount, reservation.amount),
      allocations: [...(before.allocations ?? []), ...(reservation.allocations ?? [])],
    };
  });
  return [...merged, ...ofOtherType];
}

/**
 * What a failed update may leave of a lease with several reservations: Blazar changes one after another, in the
 * order of the current lease, then the dates, and undoes nothing. An update can be made to fail at any of them.
 */
export function* leasesHalfway(currentLease: Lease, newLease: Lease): Generator<Lease> {
  const wanted = byId(newLease.reservations ?? []);
  let reservations = currentLease.reservations ?? [];
  for (const [index, before] of reservations.slice(0, -1).entries()) {
    const after = { ...before, ...wanted.get(before.id) };
    if (!isDeepStrictEqual(after, before)) {
      reservations = reservations.with(index, after);
      yield { ...currentLease, reservations };
    }
  }
}

/**
 * Whether an update keeps all reservations and their allocations. Blazar does so if no reservation changes
 * and the new dates are within the current ones; it then sends the same reservations in both leases.
 */
export function keepsReservations(currentLease: Lease, newLease: Lease): boolean {
  const start = leaseStart(currentLease);
  const end = leaseEnd(currentLease);
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

/** A map, because comparing two long lists from a client by search would block the process. */
function byId(reservations: readonly Reservation[]): Map<unknown, Reservation> {
  return new Map(reservations.flatMap((one) => (one.id === undefined ? [] : [[one.id, one] as const])));
}

function larger(before: unknown, after: unknown): unknown {
  const one = countOf(before);
  const other = countOf(after);
  return one !== undefined && (after === undefined || after === null || (other !== undefined && one > other))
    ? before
    : after;
}

/**
 * The most that a reservation may get: `max` for hosts, `amount` otherwise, the larger if it has both; at least 1
 * for a network, whose plug-in ignores both. Blazar sends numbers, or texts if the user wrote texts. `undefined` if
 * there is no usable count.
 */
export function reservationSize({ resource_type, max, amount }: Reservation): number | undefined {
  const least = resource_type === 'network' ? 1 : 0;
  if ((max ?? amount ?? undefined) === undefined) {
    return least || undefined;
  }
  const most = countOf(max ?? 0);
  const count = countOf(amount ?? 0);
  return most === undefined || count === undefined ? undefined : Math.max(least, most, count);
}

/**
 * Whether Blazar accepts the counts of a reservation: whole numbers (the amount of floating IPs may be a
 * text), and `min` not above `max`. Blazar requests a decision before it validates an update, so requests may
 * hold counts that it then refuses.
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
