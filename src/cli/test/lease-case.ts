/** The schema of a case about a lease. */
import { z } from 'zod';
import { type Instant, MICROSECONDS_PER_SECOND, toInstant } from '../../lease/dates.ts';
import { expectationOf, expectedText, mapping, text } from '../cases/expected.ts';

const CLOCK = 'expected a time such as 2026-11-21T09:00:00Z';
const TIME = `${CLOCK}, or one from now such as +2d or -3h30m`;
const time = z.string(TIME).refine(isTimeText, TIME);
/** A time that does not depend on another. */
const clockTime = z.string(CLOCK).refine((written) => toInstant(written) !== undefined, CLOCK);
const count = z.int('expected a whole number').min(0, 'expected 0 or more');
const lasting = z.number('expected a number').min(0, 'expected 0 or more');
const tags = z.array(text('a tag'), 'expected a list of tags');

const account = {
  name: text('a name').optional(),
  domain: text('the name of a domain').optional(),
};
const projectAccount = z.strictObject({ ...account, tags: tags.optional() }, 'expected a mapping');
const userAccount = z.strictObject(account, 'expected a mapping');
const id = text('an id');

const sizeSchema = z.union(
  [count, z.strictObject({ min: count.optional(), max: count })],
  'expected a whole number, or a mapping of min and max',
);

const reserved = {
  resource_type: text('a resource type such as physical:host').optional(),
  hosts: sizeSchema.optional(),
  size: sizeSchema.optional(),
  /** By name, each with `==`; or in Blazar's syntax. */
  properties: z
    .union([
      text('properties as Blazar writes them'),
      z.record(
        z.string(),
        z.union(
          [z.string(), z.number()],
          'expected a text or a number; Blazar compares texts, such as "True"',
        ),
      ),
    ])
    .optional(),
  allocations: z.array(mapping, 'expected a list of mappings').optional(),
};

const reservationSchema = z.strictObject(
  { ...reserved, attributes: mapping.optional() },
  'expected a mapping',
);
export type ShortReservation = z.infer<typeof reservationSchema>;

const leaseSchema = z
  .strictObject(
    {
      id: id.optional(),
      name: text('a name').optional(),
      project: z
        .union([id, z.strictObject({ id, ...projectAccount.shape })], 'expected an id, or a mapping')
        .optional(),
      user: z
        .union([id, z.strictObject({ id, ...userAccount.shape })], 'expected an id, or a mapping')
        .optional(),
      region: text('a name').optional(),
      start: time.optional(),
      end: time.optional(),
      hours: lasting.optional(),
      days: lasting.optional(),
      ...reserved,
      reservations: z.array(reservationSchema, 'expected a list of reservations').optional(),
      /** Other attributes that Blazar or a plug-in sends with a lease. */
      attributes: mapping.optional(),
    },
    'expected a mapping',
  )
  .superRefine((lease, context) => {
    const lengths = (['end', 'hours', 'days'] as const).filter((name) => lease[name] !== undefined);
    const [, second] = lengths;
    if (second !== undefined) {
      const message = `contradicts ${lengths[0]}: expected one of end, hours, days`;
      context.addIssue({ code: 'custom', path: [second], message });
    }
    const [short] = Object.keys(reserved).filter(
      (name) => lease[name as keyof typeof reserved] !== undefined,
    );
    if (short !== undefined && lease.reservations !== undefined) {
      context.addIssue({ code: 'custom', path: [short], message: 'contradicts reservations' });
    }
    if (lease.hosts !== undefined && lease.size !== undefined) {
      context.addIssue({ code: 'custom', path: ['size'], message: 'contradicts hosts' });
    }
  });
export type ShortLease = z.infer<typeof leaseSchema>;

const amount = z.union([z.number(), z.string()], 'expected a number of unit-hours');

const budgetSchema = z.strictObject(
  {
    project: id,
    user: id.optional(),
    from: time,
    until: time,
    amount,
  },
  'expected a mapping with project, from, until and amount',
);
export type CaseBudget = z.infer<typeof budgetSchema>;

const HTTP_ERRORS = ['connect', 'transport', 'timeout', 'answer-too-large', 'breaker-open'] as const;
const answerSchema = z.strictObject(
  {
    status: z.int('expected a status').min(100).max(599).optional(),
    body: z
      .union([z.string(), mapping, z.array(z.unknown())], 'expected a mapping, a list or a text')
      .optional(),
    /** Alternatively: the call fails. */
    error: z.enum(HTTP_ERRORS, `expected one of ${HTTP_ERRORS.join(', ')}`).optional(),
  },
  'expected a mapping with status and body, or error',
);
export type CaseServiceAnswer = z.infer<typeof answerSchema>;

const charge = z.number('expected a number of unit-hours');
const leaseExpectation = expectationOf(
  'lease',
  {
    filter: text('the name of a filter').optional(),
    failed: text('the name of a filter').optional(),
    warning: expectedText.optional(),
    charged: z
      .union(
        [charge, z.strictObject({ project: charge.optional(), user: charge.optional() })],
        'expected a number of unit-hours, or a mapping of project and user',
      )
      .optional(),
    lease_paths: mapping.optional(),
  },
  ['filter', 'failed'],
  ['charged', 'lease_paths'],
);
export type LeaseExpectation = z.infer<typeof leaseExpectation>;

export const leaseCaseSchema = z
  .strictObject(
    {
      name: text('a name').optional(),
      /** A body from Blazar: the path of a JSON file, or the body itself. */
      request: z.union([text('a path'), mapping], 'expected a path, or a mapping').optional(),
      lease: leaseSchema.optional(),
      current: leaseSchema.optional(),
      operation: z.enum(['create', 'update'], 'expected create or update').optional(),
      now: clockTime.optional(),
      keystone: z
        .strictObject({
          projects: z.record(z.string(), projectAccount).optional(),
          users: z.record(z.string(), userAccount).optional(),
          unavailable: z.boolean('expected true or false').optional(),
        })
        .optional(),
      ledger: z
        .strictObject({
          leases: z.array(leaseSchema, 'expected a list of leases').optional(),
          budgets: z.array(budgetSchema, 'expected a list of budgets').optional(),
        })
        .optional(),
      services: z.record(z.string(), answerSchema).optional(),
      expect: leaseExpectation,
    },
    'expected a mapping with request or lease, and expect',
  )
  .superRefine(({ request, lease, current, operation }, context) => {
    const wrong = (key: string, message: string) =>
      context.addIssue({ code: 'custom', path: [key], message });
    if (request === undefined && lease === undefined) {
      context.addIssue({ code: 'custom', message: 'expected request, lease, pod or task' });
    }
    if (request !== undefined && lease !== undefined) {
      wrong('lease', 'contradicts request');
    }
    if (request !== undefined && current !== undefined) {
      wrong('current', 'contradicts request, whose current_lease counts');
    }
    const isUpdate = operation === 'update';
    if (lease !== undefined && operation !== undefined && isUpdate !== (current !== undefined)) {
      wrong('operation', isUpdate ? 'expected current, the lease before' : 'contradicts current');
    }
  });

export type LeaseCase = z.infer<typeof leaseCaseSchema>;

/** In seconds. */
const UNITS = { w: 604_800, d: 86_400, h: 3_600, m: 60, s: 1 } as const;
const FROM_NOW = /^([+-])((?:\d{1,6}[wdhms])+)$/;

function isTimeText(text: string): boolean {
  return text === 'now' || FROM_NOW.test(text) || toInstant(text) !== undefined;
}

/** `now`, `+2d12h`, `-30m`, or a date. The text must be valid. */
export function timeOf(text: string, now: Instant): Instant {
  if (text === 'now') {
    return now;
  }
  const [, sign, parts] = FROM_NOW.exec(text) ?? [];
  if (parts === undefined) {
    return toInstant(text) ?? now;
  }
  let seconds = 0;
  for (const [, count, unit] of parts.matchAll(/(\d+)([wdhms])/g)) {
    seconds += Number(count) * UNITS[unit as keyof typeof UNITS];
  }
  return now + (sign === '-' ? -1n : 1n) * BigInt(seconds) * MICROSECONDS_PER_SECOND;
}
