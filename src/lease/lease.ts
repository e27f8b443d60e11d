/** Leases, and the requests about them. The names are Blazar's; attributes that this package does not know pass through. */
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
