/**
 * The schemas of requests, asked only yes or no: several times as fast as zod, which builds what nobody reads. Only a schema tells what is
 * wrong with a request, and it has the last word.
 */
import { toInstant } from './dates.ts';
import type { Context, CreateRequest, Lease } from './lease.ts';
import { ID_LENGTH, MAX_RESERVATIONS } from './request-bounds.ts';

/** A request as it is on the wire: an update has a `current_lease`. */
export interface WireUpdate extends CreateRequest {
  readonly current_lease: Lease;
}

/** As `createSchema`, which is that of an end too. */
export function isCreate(input: unknown): input is CreateRequest {
  return isObject(input) && isContext(input.context) && isLease(input.lease);
}

/** As `updateSchema`. */
export function isUpdate(input: unknown): input is WireUpdate {
  return isObject(input) && isContext(input.context) && isLease(input.current_lease) && isLease(input.lease);
}

/** As `contextSchema`. */
export function isContext(value: unknown): value is Context {
  return isObject(value) && isId(value.user_id) && isId(value.project_id);
}

function isLease(value: unknown): value is Lease {
  return (
    isObject(value) &&
    isDateOrMissing(value.start_date) &&
    isDateOrMissing(value.end_date) &&
    isDateOrMissing(value.end_time) &&
    areReservationsOrMissing(value.reservations)
  );
}

function areReservationsOrMissing(value: unknown): boolean {
  if (!Array.isArray(value)) {
    return isMissing(value);
  }
  if (value.length > MAX_RESERVATIONS) {
    return false;
  }
  // Not `every`, which skips holes.
  for (const reservation of value) {
    if (!isReservation(reservation)) {
      return false;
    }
  }
  return true;
}

function isReservation(value: unknown): boolean {
  return (
    isObject(value) &&
    (value.resource_type === undefined || typeof value.resource_type === 'string') &&
    (isMissing(value.allocations) || Array.isArray(value.allocations))
  );
}

function isId(value: unknown): boolean {
  return typeof value === 'string' && value.length > 0 && value.length <= ID_LENGTH;
}

function isDateOrMissing(value: unknown): boolean {
  return isMissing(value) || toInstant(value) !== undefined;
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
