/**
 * Validates requests: form, dates, resource types, and bounds. Context and leases are returned as received,
 * not copied; other parts of a request are dropped.
 */
import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { InvalidRequestError } from '../base/errors.ts';
import { isMapping, MAX_DEPTH } from '../base/yaml/tree.ts';
import { formatInstant, leaseEnd, leaseStart, toInstant } from './dates.ts';
import {
  type Context,
  type CreateRequest,
  type EndRequest,
  ID_LENGTH,
  isInUse,
  type Lease,
  MAX_ALLOCATIONS,
  MAX_RESERVATIONS,
  type Reservation,
  type UpdateRequest,
} from './lease.ts';
import { createSchema, endSchema, firstMistake, updateSchema } from './request-schemas.ts';

/** In characters, for lease names. Blazar's have at most 80. */
const NAME_LENGTH = 65_536;
/** In characters, for all reservations of a lease without allocations: the part that identifies a lease. */
const MAX_RESERVED = 262_144;

/** Throws `InvalidRequestError` naming the first wrong field. */
export function parseCreateRequest(input: unknown): CreateRequest {
  const { context, lease } = isCreate(input) ? input : (validated(createSchema, input) as CreateRequest);
  refuseUndated(lease);
  refuseTypeless(lease);
  refuseExpensive('lease', lease);
  return { context, lease };
}

/**
 * As `parseCreateRequest`. The current lease may be `current_lease`, its name in HTTP requests, or
 * `currentLease`; errors use the name in the request. If it has both, `current_lease` counts.
 */
export function parseUpdateRequest(input: unknown): UpdateRequest {
  const inCode = isMapping(input) && 'currentLease' in input && !('current_lease' in input);
  const wire = inCode ? { ...input, current_lease: input.currentLease } : input;
  const current = inCode ? 'currentLease' : 'current_lease';
  const { context, current_lease, lease } = isUpdate(wire)
    ? wire
    : (validated(updateSchema, wire, current) as WireUpdate);
  refuseUndated(lease, current_lease);
  refuseTypeless(lease, current_lease, current);
  refuseExpensive(current, current_lease);
  refuseExpensive('lease', lease);
  refuseRewritten(context, lease, current_lease);
  refuseTooLate(lease, current_lease, current);
  refuseUnwritable(lease, current_lease);
  return { context, currentLease: current_lease, lease };
}

/** As `parseCreateRequest`, except that dates may be missing. */
export function parseEndRequest(input: unknown): EndRequest {
  const { context, lease } = isCreate(input) ? input : (validated(endSchema, input) as EndRequest);
  refuseExpensive('lease', lease);
  return { context, lease };
}

/**
 * A lease to be checked has a start and an end, in this order; in an update, either may come from the current
 * lease. Not a refinement of the schemas: zod would copy each request for it, and V8 keeps the contents of
 * the copies until the next full garbage collection.
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

const TO_END = 'because Blazar could not end the lease otherwise';
const TO_OWN = 'because a lease stays with its owner, whose limits apply to it';

/** What an update keeps: Blazar lets users write it, and asks about the next update as the owner that it finds in the lease. */
const KEPT = [
  ['events', TO_END],
  ['trust_id', TO_END],
  ['id', TO_OWN],
  ['user_id', TO_OWN],
  ['project_id', TO_OWN],
] as const;

function refuseRewritten(context: Context, lease: Lease, currentLease: Lease): void {
  for (const [field, why] of KEPT) {
    const written = lease[field];
    if (written === undefined) {
      continue;
    }
    // A current lease may lack these.
    const { user_id, project_id } = context;
    const before: Lease = { id: lease.id, user_id, project_id, ...currentLease };
    if (!isDeepStrictEqual(written, before[field])) {
      const expected = `expected what the current lease has, ${why}, got ${kindOf(written)}`;
      throw new InvalidRequestError(`lease.${field}`, expected);
    }
  }
}

/**
 * What Blazar refuses, but not in the minute of the start, and of the end: it would let a running lease use its hosts
 * until the end of its new, later time, and give a lease that has ended hosts that it never takes back.
 */
function refuseTooLate(lease: Lease, currentLease: Lease, currentName: string): void {
  const start = leaseStart(lease);
  const isMoved = start !== undefined && start !== leaseStart(currentLease);
  for (const [index, reservation] of (currentLease.reservations ?? []).entries()) {
    if (reservation.status === 'deleted') {
      const expected = 'expected one of a lease that has not ended, got "deleted"';
      throw new InvalidRequestError(`${currentName}.reservations.${index}.status`, expected);
    }
    if (isMoved && isInUse(reservation)) {
      const expected = 'expected what the current lease has, because it has started';
      throw new InvalidRequestError('lease.start_date', `${expected}, got ${kindOf(lease.start_date)}`);
    }
  }
}

const TEXTS_IN_BLAZAR = ['resource_properties', 'hypervisor_properties'] as const;

/** Blazar cannot write these, but has already given the reservation its new hosts when it fails, uncounted. */
function refuseUnwritable(lease: Lease, currentLease: Lease): void {
  for (const [index, reservation] of (lease.reservations ?? []).entries()) {
    for (const field of TEXTS_IN_BLAZAR) {
      const { [field]: written = null } = reservation;
      const isAsBefore = () =>
        currentLease.reservations?.some(
          (one) => one.id === reservation.id && isDeepStrictEqual(one[field], written),
        ) === true;
      if (written !== null && typeof written !== 'string' && !isAsBefore()) {
        throw new InvalidRequestError(
          `lease.reservations.${index}.${field}`,
          `expected a text, because Blazar could not finish the change, got ${kindOf(written)}`,
        );
      }
    }
  }
}

/*
 * The form. These functions only accept a request or not, in a quarter of zod's time. If not, the schema
 * decides and reports the mistake.
 */

/** A request in its HTTP form: an update has a `current_lease`. */
interface WireUpdate extends CreateRequest {
  readonly current_lease: Lease;
}

/** As `createSchema` and `endSchema`. */
export function isCreate(input: unknown): input is CreateRequest {
  return isMapping(input) && isContext(input.context) && isLease(input.lease);
}

/** As `updateSchema`. */
export function isUpdate(input: unknown): input is WireUpdate {
  return isMapping(input) && isContext(input.context) && isLease(input.current_lease) && isLease(input.lease);
}

/** As `contextSchema`. */
export function isContext(value: unknown): value is Context {
  return isMapping(value) && isId(value.user_id) && isId(value.project_id);
}

function isLease(value: unknown): value is Lease {
  return (
    isMapping(value) &&
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
  // Not `every`: it skips holes.
  for (const reservation of value) {
    if (!isReservation(reservation)) {
      return false;
    }
  }
  return true;
}

function isReservation(value: unknown): boolean {
  return (
    isMapping(value) &&
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

/** The input, if the schema accepts it. `currentLease`: the caller's name for `current_lease`. */
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

/** A value in a message: a short text in full, a long one cut, a date; for another object or a list only its kind. */
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
  if (Array.isArray(input)) {
    return 'a list';
  }
  if (typeof input !== 'object') {
    return String(input);
  }
  // Code that embeds the library passes dates as objects.
  const instant = toInstant(input);
  return instant === undefined ? 'an object' : formatInstant(instant);
}

/*
 * Types. Every reservation needs a resource type: limits are per type, and would ignore a reservation without
 * one. Blazar sends `resource_type` with each reservation, in both leases of an update.
 */

/**
 * Throws `InvalidRequestError` for the first reservation without a type. A reservation of an update may omit
 * it if the current lease has a reservation with the same id. `currentName`: name of the current lease in the
 * request. Cost: linear.
 */
export function refuseTypeless(
  lease: Pick<Lease, 'reservations'>,
  currentLease: Pick<Lease, 'reservations'> = {},
  currentName = 'current_lease',
): void {
  const current = currentLease.reservations ?? [];
  const reservations = lease.reservations ?? [];
  // Most requests end here, before any allocation.
  if (!reservations.some(isTypeless) && !current.some(isTypeless)) {
    return;
  }
  const ids = new Set(current.flatMap(({ id }) => (typeof id === 'string' ? [id] : [])));
  const isKnown = ({ id, resource_type }: Reservation) =>
    resource_type === undefined && typeof id === 'string' && ids.has(id);
  refuse(
    'lease',
    reservations.findIndex((one) => isTypeless(one) && !isKnown(one)),
  );
  refuse(currentName, current.findIndex(isTypeless));
}

function isTypeless({ resource_type }: Reservation): boolean {
  return resource_type === undefined || resource_type.trim() === '';
}

function refuse(lease: string, index: number): void {
  if (index !== -1) {
    throw new InvalidRequestError(
      `${lease}.reservations.${index}.resource_type`,
      'expected the type of what is reserved, such as physical:host, got none',
    );
  }
}

/* Bounds that keep every request cheap: any accepted body occupies the process only briefly. */

/**
 * Throws `InvalidRequestError` if a lease exceeds a bound other than `MAX_RESERVATIONS`. `lease`: its name in
 * the request.
 */
function refuseExpensive(lease: string, { name, reservations }: Lease): void {
  if (typeof name === 'string' && name.length > NAME_LENGTH) {
    const expected = `expected a text of at most ${NAME_LENGTH} characters, got ${name.length}`;
    throw new InvalidRequestError(`${lease}.name`, expected);
  }
  // On the path of every request: iterators, texts and the set are created only when needed.
  let ids: Set<unknown> | undefined;
  let allocated = 0;
  let reserved = 0;
  for (let index = 0; index < (reservations?.length ?? 0); index += 1) {
    const reservation = reservations?.[index] as Reservation;
    const place = () => `${lease}.reservations.${index}`;
    const { id, allocations } = reservation;
    reserved += sizeWithoutAllocations(reservation, MAX_RESERVED - reserved);
    if (reserved === Number.POSITIVE_INFINITY) {
      throw new InvalidRequestError(place(), `expected at most ${MAX_DEPTH} levels of nesting, got more`);
    }
    if (reserved > MAX_RESERVED) {
      const expected = `expected reservations of at most ${MAX_RESERVED} characters together, without their allocations, got more`;
      throw new InvalidRequestError(place(), expected);
    }
    allocated += allocations?.length ?? 0;
    if (allocated > MAX_ALLOCATIONS) {
      const expected = `expected at most ${MAX_ALLOCATIONS} allocations in all reservations of a lease, got more`;
      throw new InvalidRequestError(`${place()}.allocations`, expected);
    }
    if (id === undefined || id === null) {
      continue;
    }
    if (ids?.has(id)) {
      // An update merges each reservation with the current one of the same id, including allocations.
      const expected = 'expected an id that no other reservation of the lease has, got one twice';
      throw new InvalidRequestError(`${place()}.id`, expected);
    }
    ids ??= new Set();
    ids.add(id);
  }
}

function sizeWithoutAllocations(reservation: Reservation, most: number): number {
  let size = 0;
  for (const name in reservation) {
    if (size > most) {
      break;
    }
    const value = reservation[name];
    size += name === 'allocations' ? 0 : name.length + leastJsonLength(value, most - size);
  }
  return size;
}

/**
 * The value is at least that long as JSON: what it costs to write, known before it is written. Stops counting above `most`. Infinity if it is
 * nested deeper than can be written.
 */
export function leastJsonLength(value: unknown, most: number, levels = MAX_DEPTH): number {
  if (typeof value === 'string') {
    return value.length;
  }
  let size = 1;
  if (typeof value === 'object' && value !== null) {
    if (levels === 0) {
      return Number.POSITIVE_INFINITY;
    }
    const hasNames = !Array.isArray(value);
    for (const name in value) {
      if (size > most) {
        break;
      }
      const member = (value as Readonly<Record<string, unknown>>)[name];
      size += (hasNames ? name.length : 0) + leastJsonLength(member, most - size, levels - 1);
    }
  }
  return size;
}
