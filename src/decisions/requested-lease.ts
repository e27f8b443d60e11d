/**
 * The dates and reservations of a refused lease. The store and the console keep them to try the lease again;
 * the log has whole requests, if configured.
 */
import { type Instant, leaseEnd, leaseStart } from '../lease/dates.ts';
import { type Reservation, reservationsAfterUpdate } from '../lease/lease.ts';
import { leastJsonLength } from '../lease/request.ts';
import type { DecidedRequest } from './lease-record.ts';

export interface RequestedLease {
  readonly start: Instant;
  readonly end: Instant;
  /**
   * Without allocations and attributes that Blazar adds. `undefined` = not kept: too many or too long, or
   * decided by an older version.
   */
  readonly reservations?: readonly Reservation[] | undefined;
}

const MOST_RESERVATIONS = 20;
/** All reservations together, as JSON in UTF-8. */
const MOST_BYTES = 4096;

/** Attributes that Blazar adds to the reservations of a lease; users cannot request them. */
const ADDED: ReadonlySet<string> = new Set([
  'id',
  'lease_id',
  'resource_id',
  'allocations',
  'status',
  'created_at',
  'updated_at',
  'missing_resources',
  'resources_changed',
]);

/** An update need not repeat unchanged values. `undefined` = a date is missing. */
export function requestedLeaseOf({
  lease,
  current_lease,
  currentLease,
}: DecidedRequest): RequestedLease | undefined {
  const current = current_lease ?? currentLease ?? {};
  const start = leaseStart(lease) ?? leaseStart(current);
  const end = leaseEnd(lease) ?? leaseEnd(current);
  return start === undefined || end === undefined
    ? undefined
    : { start, end, reservations: kept(reservationsAfterUpdate(current, lease)) };
}

/** All or nothing: a part of the reservations could be judged differently. */
function kept(reservations: readonly Reservation[]): readonly Reservation[] | undefined {
  if (reservations.length > MOST_RESERVATIONS) {
    return undefined;
  }
  const asked = reservations.map(
    (reservation): Reservation =>
      Object.fromEntries(
        Object.entries(reservation).filter(
          ([name, value]) => !ADDED.has(name) && value !== undefined && value !== null,
        ),
      ),
  );
  const isShort =
    leastJsonLength(asked, MOST_BYTES) <= MOST_BYTES &&
    Buffer.byteLength(JSON.stringify(asked)) <= MOST_BYTES;
  return isShort ? asked : undefined;
}
