/**
 * The schemas of requests, for validation and the OpenAPI document. A request is checked and passed on
 * unchanged; zod's copy, which drops unknown attributes to save time, is not used.
 */
import { z } from 'zod';
import { type DateValue, toInstant } from './dates.ts';
import { type Allocation, ID_LENGTH, MAX_RESERVATIONS } from './lease.ts';

const year = '(0[1-9]|[1-9][0-9])[0-9]{2}';
const month = '(0[1-9]|1[0-2])';
const day = '(0[1-9]|[12][0-9]|3[01])';
const week = 'W(0[1-9]|[1-4][0-9]|5[0-3])';
const dayOfYear = '(00[1-9]|0[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-6])';
const hour = '([01][0-9]|2[0-4])';
const minute = '[0-5][0-9]';
const second = '[0-5][0-9]([.,][0-9]{1,18})?';
const offset = '([Zz]|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)';

/** `2026-12-01`, `2026-12-01 09:00`, `2026-12-01T09:00:00.000001+01:00`. */
const calendar = `${year}-${month}-${day}([Tt ]${hour}:${minute}(:${second})?)?${offset}?`;
/** `20261201T090000Z`, `2026-335`, `2026-W49-2T09:00`. */
const other = `${year}(${month}${day}|-?${dayOfYear}|-?${week}-?[1-7])([Tt]${hour}(:?${minute}(:?${second})?)?${offset}?)?`;

/**
 * The dates that `toInstant` accepts, as a regular expression for the OpenAPI document. It also matches days
 * that do not exist (`2026-02-30`). It uses no lookaheads and no flags, which some languages lack.
 */
export const DATE_PATTERN = `^(${calendar}|${other})$`;

const dateSchema = z
  .custom<DateValue>((value) => toInstant(value) !== undefined, 'an ISO 8601 date')
  .meta({
    description:
      'An ISO 8601 date, or `YYYY-MM-DD HH:MM`. Without an offset it is UTC. Week dates, ordinal dates and the basic format are accepted too.',
    type: 'string',
    pattern: DATE_PATTERN,
    examples: ['2026-12-01T09:00:00', '2026-12-01 09:00', '2026-12-01T10:00:00.000000+01:00', '2026-12-01'],
  });
const idSchema = z
  .string('a text')
  .min(1, 'a text that is not empty')
  .max(ID_LENGTH, `a text of at most ${ID_LENGTH} characters`);

export const contextSchema = z
  .object({ user_id: idSchema, project_id: idSchema }, 'an object')
  .meta({ description: 'The user who sent the request. Blazar also sends `auth_url` and `region_name`.' });

/** Allocations are not validated: the cost of a check must not grow with the number of hosts. */
const reservationSchema = z
  .object(
    {
      resource_type: z
        .string('a text')
        .optional()
        .meta({
          description:
            'The kind of resource; its plug-in defines further attributes. Required, except in an end, and in an update for a reservation whose `id` is in the current lease.',
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
  .meta({ description: 'Resources of one kind.' });

const leaseSchema = z
  .object(
    {
      start_date: dateSchema.nullish(),
      end_date: dateSchema.nullish(),
      end_time: dateSchema.nullish().meta({ description: 'The end, if there is no `end_date`.' }),
      // zod checks the length before the elements.
      reservations: z
        .array(reservationSchema, 'a list')
        .max(MAX_RESERVATIONS, `a list of at most ${MAX_RESERVATIONS} reservations`)
        .nullish(),
    },
    'an object',
  )
  .meta({ description: 'What is leased, and from when to when.' });

/** The part of `refuseUndated` that JSON Schema can express: one of these leases has a start, one an end. */
function datesRequired(...leases: string[]): object {
  const allLack = (...dates: string[]) => ({
    properties: all(leases, { properties: all(dates, { type: 'null' }) }),
  });
  return { not: { anyOf: [allLack('start_date'), allLack('end_date', 'end_time')] } };
}

function all(names: readonly string[], schema: object): Record<string, object> {
  return Object.fromEntries(names.map((name) => [name, schema]));
}

/** `refuseTypeless` of `request.ts` as JSON Schema, which cannot look up an id in the current lease. */
function typesRequired({ update }: { readonly update: boolean }): object {
  const typed = { required: ['resource_type'] };
  const named = { properties: { resource_type: { pattern: '\\S' } } };
  const of = (items: object) => ({ properties: { reservations: { items: { ...named, ...items } } } });
  return {
    allOf: [
      {
        properties: update
          ? { lease: of({ anyOf: [typed, { required: ['id'] }] }), current_lease: of(typed) }
          : { lease: of(typed) },
      },
    ],
  };
}

export const createSchema = z.object({ context: contextSchema, lease: leaseSchema }, 'an object').meta({
  description: 'A lease that is about to be created. It has a start and an end.',
  ...datesRequired('lease'),
  ...typesRequired({ update: false }),
});
export const updateSchema = z
  .object(
    {
      context: contextSchema,
      current_lease: leaseSchema.meta({ description: 'The lease before the update.' }),
      lease: leaseSchema.meta({
        description: 'The lease after the update. What does not change may be missing.',
      }),
    },
    'an object',
  )
  .meta({
    description: 'A lease that is about to be changed. One of the two leases has a start, and one an end.',
    ...datesRequired('lease', 'current_lease'),
    ...typesRequired({ update: true }),
  });
export const endSchema = z
  .object({ context: contextSchema, lease: leaseSchema }, 'an object')
  .meta({ description: 'A lease that has ended. Its dates may be missing.' });

/** All schemas, by their names in the OpenAPI document. */
export const requestSchemas = {
  CreateRequest: createSchema,
  UpdateRequest: updateSchema,
  EndRequest: endSchema,
  Context: contextSchema,
  Lease: leaseSchema,
  Reservation: reservationSchema,
  LeaseDate: dateSchema,
} as const;

/**
 * The first mistake in a value; `undefined` = none. zod's own `safeParse` collects all mistakes: a list with
 * a million of them would cost a million objects.
 */
export function firstMistake(schema: z.ZodType, value: unknown): z.core.$ZodIssue | undefined {
  if (schema.validate(value)) {
    return undefined;
  }
  // zod sets this flag itself in `validate`, which returns no issues.
  const context: z.core.ParseContextInternal<z.core.$ZodIssue> = { reportInput: true, abortEarly: true };
  const { error } = schema.safeParse(value, context);
  return error?.issues[0] ?? { code: 'custom', path: [], message: 'something else', input: value };
}
