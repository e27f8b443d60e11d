/** Validates requests. Context and leases are returned as they came, not copied; other parts of a request are dropped. */
import type { z } from 'zod';
import { InvalidRequestError } from '../errors.ts';
import { firstMistake } from './first-mistake.ts';
import {
  type CreateRequest,
  type EndRequest,
  type Lease,
  leaseEnd,
  leaseStart,
  type UpdateRequest,
} from './lease.ts';
import { refuseDear } from './request-bounds.ts';
import { createSchema, endSchema, updateSchema } from './request-schemas.ts';
import { refuseTypeless } from './reservation-types.ts';
import { isCreate, isUpdate, type WireUpdate } from './well-formed.ts';

/** Throws `InvalidRequestError` naming the first wrong field. */
export function parseCreateRequest(input: unknown): CreateRequest {
  const { context, lease } = isCreate(input) ? input : (validated(createSchema, input) as CreateRequest);
  refuseUndated(lease);
  refuseTypeless(lease);
  refuseDear('lease', lease);
  return { context, lease };
}

/**
 * As `parseCreateRequest`. The current lease may be `current_lease`, its name on the wire, or `currentLease`; errors
 * call it what the request calls it. If the request has both, `current_lease` counts.
 */
export function parseUpdateRequest(input: unknown): UpdateRequest {
  const inCode = isObject(input) && 'currentLease' in input && !('current_lease' in input);
  const wire = inCode ? { ...input, current_lease: input.currentLease } : input;
  const current = inCode ? 'currentLease' : 'current_lease';
  const { context, current_lease, lease } = isUpdate(wire)
    ? wire
    : (validated(updateSchema, wire, current) as WireUpdate);
  refuseUndated(lease, current_lease);
  refuseTypeless(lease, current_lease, current);
  refuseDear(current, current_lease);
  refuseDear('lease', lease);
  return { context, currentLease: current_lease, lease };
}

/** As `parseCreateRequest`, except that dates may be missing. */
export function parseEndRequest(input: unknown): EndRequest {
  const { context, lease } = isCreate(input) ? input : (validated(endSchema, input) as EndRequest);
  refuseDear('lease', lease);
  return { context, lease };
}

/**
 * A lease to be checked has a start and an end, in this order. In an update, either may come from the current lease. Not a refinement of the
 * schemas: zod would copy each request for it, and V8 keeps what the copies hold until the next full garbage collection.
 */
function refuseUndated(lease: Lease, currentLease: Lease = {}): void {
  const start = leaseStart(lease) ?? leaseStart(currentLease);
  const end = leaseEnd(lease) ?? leaseEnd(currentLease);
  const refuse = (field: string, expected: string): never => {
    throw new InvalidRequestError(`lease.${field}`, `expected ${expected}, got ${kindOf(lease[field])}`);
  };
  if (start === undefined) {
    refuse('start_date', 'an ISO 8601 date');
  } else if (end === undefined) {
    refuse('end_date', 'an ISO 8601 date');
  } else if (end < start) {
    refuse(lease.end_date === undefined ? 'end_time' : 'end_date', 'a date that is not before start_date');
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** The input, if the schema accepts it. `currentLease`: what the caller calls `current_lease`. */
export function validated(schema: z.ZodType, input: unknown, currentLease = 'current_lease'): unknown {
  const issue = firstMistake(schema, input);
  if (issue === undefined) {
    return input;
  }
  const [first, ...rest] = issue.path;
  const path = first === 'current_lease' ? [currentLease, ...rest] : issue.path;
  throw new InvalidRequestError(
    path.map(String).join('.'),
    `expected ${issue.message}, got ${kindOf(issue.input)}`,
  );
}

/** What a message shows of a value: a short text in full, a long one cut, of an object or a list only its kind. */
export function kindOf(input: unknown): string {
  if (input === undefined) {
    return 'nothing';
  }
  if (input === null) {
    return 'null';
  }
  if (typeof input === 'string') {
    return JSON.stringify(input.length > 40 ? `${input.slice(0, 40)}…` : input);
  }
  return Array.isArray(input) ? 'a list' : typeof input === 'object' ? 'an object' : String(input);
}
