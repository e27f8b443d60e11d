/** The request: whose it is, and what they want. The names are Blazar's; attributes that nobody knows pass through. */
import { z } from 'zod';
import { InvalidRequestError } from '../errors.ts';
import { DATE_PATTERN } from './date-pattern.ts';
import { type DateValue, type Instant, toInstant } from './dates.ts';
import { firstMistake } from './first-mistake.ts';
import { ID_LENGTH, MAX_RESERVATIONS, refuseDear } from './request-bounds.ts';
import { refuseTypeless, typesRequired } from './reservation-types.ts';

/** Who asks, as Blazar says it. */
export interface Context {
  readonly user_id: string;
  readonly project_id: string;
  readonly auth_url?: string | null;
  readonly region_name?: string | null;
  readonly [attribute: string]: unknown;
}

/** One host, address, … that a reservation was given. Its attributes are the resource plug-in's. */
export type Allocation = Readonly<Record<string, unknown>>;

export interface Reservation {
  /** `physical:host`, `virtual:instance`, `flavor:instance`, `virtual:floatingip`, `network`, … */
  readonly resource_type?: string;
  readonly allocations?: readonly Allocation[];
  readonly [attribute: string]: unknown;
}

/**
 * What is leased. Only dates and reservations have a known form. In an update the new lease may lack what the caller
 * does not change: look into the current lease for it.
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

/** When the lease begins, or `undefined` when it does not say. */
export function leaseStart(lease: Lease): Instant | undefined {
  return toInstant(lease.start_date);
}

/** When the lease ends. Blazar sends `end_date`; the documented example says `end_time`, read where there is no `end_date`. */
export function leaseEnd(lease: Lease): Instant | undefined {
  return toInstant(lease.end_date ?? lease.end_time);
}

// Only checked with these, and passed on as it came: zod drops what it does not know from its copy, which costs less.
const dateSchema = z
  .custom<DateValue>((value) => toInstant(value) !== undefined, 'an ISO 8601 date')
  .meta({
    description:
      'A date of ISO 8601, or `YYYY-MM-DD HH:MM`. Without an offset it means UTC. Week dates, ordinal dates and the basic format are read too.',
    type: 'string',
    pattern: DATE_PATTERN,
    examples: ['2026-12-01T09:00:00', '2026-12-01 09:00', '2026-12-01T10:00:00.000000+01:00', '2026-12-01'],
  });
const idSchema = z
  .string('a text')
  .min(1, 'a text that is not empty')
  .max(ID_LENGTH, `a text of at most ${ID_LENGTH} characters`);

const contextSchema = z
  .object({ user_id: idSchema, project_id: idSchema }, 'an object')
  .meta({ description: 'Who asks. Blazar sends `auth_url` and `region_name` besides.' });

/** Allocations are not walked through: a check must not cost more the more hosts a lease has. */
const reservationSchema = z
  .object(
    {
      resource_type: z
        .string('a text')
        .optional()
        .meta({
          description:
            'What kind of thing is reserved; its plug-in knows further attributes. Only an update may leave it out, of a reservation that the current lease has by the same `id`; and an end.',
          examples: ['physical:host', 'virtual:instance', 'flavor:instance', 'virtual:floatingip', 'network'],
        }),
      allocations: z
        .custom<Allocation[]>(
          (value) => value === undefined || value === null || Array.isArray(value),
          'a list',
        )
        .optional()
        .meta({
          description: 'The hosts, addresses, … that were found for it, each with its attributes.',
          type: ['array', 'null'],
          items: { type: 'object', additionalProperties: true },
        }),
    },
    'an object',
  )
  .meta({ description: 'One kind of resource that is wanted.' });

const leaseSchema = z
  .object(
    {
      start_date: dateSchema.nullish(),
      end_date: dateSchema.nullish(),
      end_time: dateSchema.nullish().meta({ description: 'Read as the end where there is no `end_date`.' }),
      // zod judges the length first.
      reservations: z
        .array(reservationSchema, 'a list')
        .max(MAX_RESERVATIONS, `a list of at most ${MAX_RESERVATIONS} reservations`)
        .nullish(),
    },
    'an object',
  )
  .meta({ description: 'What is leased, from when to when.' });

/** What is to be judged says when it begins and ends, in this order. An update may leave a date to the current lease. */
function requireDates(lease: Lease, currentLease: Lease, check: z.RefinementCtx, path: string[]): void {
  const start = leaseStart(lease) ?? leaseStart(currentLease);
  const end = leaseEnd(lease) ?? leaseEnd(currentLease);
  const report = (field: string, message: string) =>
    check.addIssue({ code: 'custom', path: [...path, field], message, input: lease[field] });
  if (start === undefined) {
    report('start_date', 'an ISO 8601 date');
  } else if (end === undefined) {
    report('end_date', 'an ISO 8601 date');
  } else if (end < start) {
    report(lease.end_date === undefined ? 'end_time' : 'end_date', 'a date that is not before start_date');
  }
}

/** `requireDates` as JSON Schema, as far as that goes: not all of these leases may lack a start, nor all of them an end. */
function datesRequired(...leases: string[]): object {
  const allLack = (...dates: string[]) => ({
    properties: all(leases, { properties: all(dates, { type: 'null' }) }),
  });
  return { not: { anyOf: [allLack('start_date'), allLack('end_date', 'end_time')] } };
}

function all(names: readonly string[], schema: object): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, schema]));
}

const createSchema = z
  .object({ context: contextSchema, lease: leaseSchema }, 'an object')
  .superRefine(({ lease }, check) => requireDates(lease as Lease, {}, check, ['lease']))
  .meta({
    description: 'A lease that somebody wants. It says when it begins and when it ends.',
    ...datesRequired('lease'),
    ...typesRequired({ update: false }),
  });
const updateSchema = z
  .object(
    {
      context: contextSchema,
      current_lease: leaseSchema.meta({ description: 'The lease as it is.' }),
      lease: leaseSchema.meta({
        description: 'The lease as it is to be. What the caller does not change may be missing.',
      }),
    },
    'an object',
  )
  .superRefine(({ lease, current_lease }, check) =>
    requireDates(lease as Lease, current_lease as Lease, check, ['lease']),
  )
  .meta({
    description: 'A change that somebody wants. One of its leases says when it begins, and one when it ends.',
    ...datesRequired('lease', 'current_lease'),
    ...typesRequired({ update: true }),
  });
const endSchema = z
  .object({ context: contextSchema, lease: leaseSchema }, 'an object')
  .meta({ description: 'A lease that has ended. It need not say when.' });

/** What requests are held against, and described by to others. The names are those that they have there. */
export const requestSchemas = {
  CreateRequest: createSchema,
  UpdateRequest: updateSchema,
  EndRequest: endSchema,
  Context: contextSchema,
  Lease: leaseSchema,
  Reservation: reservationSchema,
  LeaseDate: dateSchema,
} as const;

// Compiled: a check would otherwise cost more than parsing the JSON of its request. When it is first needed: a command that
// asks one thing need not wait for the others.
const compiledCreate = compiledOnce(createSchema);
const compiledUpdate = compiledOnce(updateSchema);
const compiledEnd = compiledOnce(endSchema);

function compiledOnce(schema: z.ZodType): () => z.ZodType {
  let compiled: z.ZodType | undefined;
  return () => {
    compiled ??= z.compile(schema);
    return compiled;
  };
}

/** Checks a request and returns it as it came, not copied. Throws `InvalidRequestError` naming the first wrong field. */
export function parseCreateRequest(input: unknown): CreateRequest {
  const request = check(compiledCreate(), input) as CreateRequest;
  refuseTypeless(request.lease);
  refuseDear('lease', request.lease);
  return request;
}

/** As `parseCreateRequest`; the current lease is read as `current_lease`, its name on the wire, or `currentLease`. */
export function parseUpdateRequest(input: unknown): UpdateRequest {
  const wire =
    isObject(input) && 'currentLease' in input && !('current_lease' in input)
      ? { ...input, current_lease: input.currentLease }
      : input;
  const { context, current_lease, lease } = check(compiledUpdate(), wire) as {
    context: Context;
    current_lease: Lease;
    lease: Lease;
  };
  refuseTypeless(lease, current_lease);
  refuseDear('current_lease', current_lease);
  refuseDear('lease', lease);
  return { context, currentLease: current_lease, lease };
}

/** As `parseCreateRequest`; a lease that has ended need not say when. */
export function parseEndRequest(input: unknown): EndRequest {
  const request = check(compiledEnd(), input) as EndRequest;
  refuseDear('lease', request.lease);
  return request;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function check(schema: z.ZodType, input: unknown): unknown {
  const issue = firstMistake(schema, input);
  if (issue === undefined) {
    return input;
  }
  throw new InvalidRequestError(
    issue.path.map(String).join('.'),
    `expected ${issue.message}, got ${kindOf(issue.input)}`,
  );
}

/** What came, without repeating what may be long: the text of a date is worth showing, an object is not. */
function kindOf(input: unknown): string {
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

/** What a lease service knows of itself and Blazar sends in every context. */
export interface ContextDetails {
  readonly authUrl: string;
  readonly regionName: string | null;
}

/** The context of a request, from the values of the lease that it is about. Source: Blazar, `format_context`. */
export function formatContext(leaseValues: Lease, details: ContextDetails): Context {
  return check(contextSchema, {
    user_id: leaseValues.user_id,
    project_id: leaseValues.project_id,
    auth_url: details.authUrl,
    region_name: details.regionName,
  }) as Context;
}

/**
 * The lease of a request, from Blazar's own arguments: the lease values, its reservations, and the allocations by
 * resource type. Nothing that is passed in is changed. Throws `InvalidRequestError` for a reservation without a
 * resource type and for a resource type without allocations. Source: Blazar, `format_lease`.
 */
export function formatLease(
  leaseValues: Lease,
  reservations: readonly Reservation[],
  allocations: Readonly<Record<string, readonly Allocation[]>>,
): Lease {
  return {
    ...leaseValues,
    reservations: reservations.map((reservation, index) => {
      const type = reservation.resource_type;
      if (typeof type !== 'string' || !Object.hasOwn(allocations, type)) {
        const known = Object.keys(allocations).join(', ');
        throw new InvalidRequestError(
          `reservations.${index}.resource_type`,
          `expected a resource type that has allocations (${known === '' ? 'there are none' : known}), got ${kindOf(type)}`,
        );
      }
      return { ...reservation, allocations: allocations[type] ?? [] };
    }),
  };
}
