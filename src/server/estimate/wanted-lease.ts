/**
 * A lease as users send it to Blazar (`POST /v1/leases`), and as Blazar passes it to the filters. Source:
 * Blazar, `create_lease` and `_parse_lease_dates` of its manager, `_check_params` of its plugins.
 */
import { z } from 'zod';
import {
  formatInstant,
  type Instant,
  leaseEnd,
  leaseStart,
  MICROSECONDS_PER_SECOND,
  toInstant,
} from '../../lease/dates.ts';
import { type Context, type CreateRequest, type Lease, MAX_RESERVATIONS } from '../../lease/lease.ts';
import { ApiError } from '../api/route.ts';

export const MINUTE = 60n * MICROSECONDS_PER_SECOND;

const DATE = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d$/;
export const dateSchema = z
  .string('expected a date such as 2026-12-01 09:00')
  .refine(
    (text) => text === 'now' || (DATE.test(text) && toInstant(text) !== undefined),
    'expected a date such as 2026-12-01 09:00, or now',
  )
  .meta({ pattern: `${DATE.source.slice(0, -1)}$|^now$`, examples: ['2026-12-01 09:00', 'now'] });

const EXPECTED_COUNT = 'expected a whole number from 1 to 1000000';
export const countSchema = z.int(EXPECTED_COUNT).min(1, EXPECTED_COUNT).max(1_000_000, EXPECTED_COUNT);

const id = z.string('expected a text').min(1, 'expected a text that is not empty').max(255);

/** Other attributes are passed on: plug-ins may use them. */
const reservation = z
  .looseObject(
    {
      resource_type: id.meta({
        description:
          'physical:host, virtual:instance, flavor:instance, virtual:floatingip, or another that Blazar has a plug-in for.',
      }),
      min: countSchema.optional().meta({ description: 'The minimum number of hosts.' }),
      max: countSchema.optional().meta({ description: 'The maximum number of hosts.' }),
      amount: z
        .union(
          [countSchema, z.string().regex(/^[1-9]\d{0,5}$/, 'expected a whole number from 1 on')],
          'expected a whole number from 1 on',
        )
        .optional()
        .meta({ description: 'The number of instances or addresses.' }),
    },
    'expected an object',
  )
  .superRefine(({ resource_type, min, max }, check) => {
    const [lacks] = Object.entries(resource_type === 'physical:host' ? { min, max } : {}).filter(
      ([, value]) => value === undefined,
    );
    if (lacks !== undefined) {
      check.addIssue({ code: 'custom', path: [lacks[0]], message: 'expected a whole number from 1 on' });
    } else if (min !== undefined && max !== undefined && min > max) {
      check.addIssue({ code: 'custom', path: ['max'], message: 'expected a number that is not below min' });
    }
  });

export const wantedLeaseSchema = z
  .looseObject(
    {
      name: z.string('expected a text').max(255).optional(),
      start_date: dateSchema.meta({ description: 'In UTC, to the minute; `now` = the current minute.' }),
      end_date: dateSchema.meta({ description: 'In UTC, to the minute.' }),
      reservations: z
        .array(reservation, 'expected a list')
        .max(MAX_RESERVATIONS, `expected at most ${MAX_RESERVATIONS} reservations`)
        .default([]),
    },
    'expected a lease in the format of Blazar',
  )
  .meta({ description: 'A lease as it is sent to Blazar.' });

export type WantedLease = z.infer<typeof wantedLeaseSchema>;

/** A lease that Blazar would reject before calling filters. `field`: the wrong field. */
export class UnusableLeaseError extends ApiError {
  constructor(field: string, message: string) {
    super(400, message, { field });
  }
}

/** Blazar's request to the filters at `now`, without hosts: not known yet. @throws UnusableLeaseError */
export function requestFor(wanted: WantedLease, context: Context, now: Instant): CreateRequest {
  const minute = now - (now % MINUTE);
  const at = (text: string) => (text === 'now' ? minute : (toInstant(text) ?? minute));
  const start = at(wanted.start_date);
  const end = at(wanted.end_date);
  if (start < minute) {
    throw new UnusableLeaseError('start_date', 'expected a date that is not past');
  }
  if (end <= start) {
    throw new UnusableLeaseError('end_date', 'expected a date after start_date');
  }
  const { user_id, project_id } = context;
  const { events: _events, ...rest } = wanted;
  const lease: Lease = {
    ...rest,
    start_date: asBlazarSends(start),
    end_date: asBlazarSends(end),
    status: 'CREATING',
    user_id,
    project_id,
    reservations: wanted.reservations.map((one) => ({ ...one, allocations: [] })),
  };
  return { context, lease };
}

/** The body for Blazar: `wanted` with the differences between `lease` and the lease of `request`. */
export function asSentToBlazar(wanted: WantedLease, request: CreateRequest, lease: Lease): WantedLease {
  const date = (written: string, before: Instant | undefined, after: Instant | undefined) =>
    before === after || after === undefined ? written : dateText(after);
  return {
    ...wanted,
    start_date: date(wanted.start_date, leaseStart(request.lease), leaseStart(lease)),
    end_date: date(wanted.end_date, leaseEnd(request.lease), leaseEnd(lease)),
    reservations: wanted.reservations.map((one, index) => {
      const { min, max, amount } = lease.reservations?.[index] ?? one;
      const counts = { min, max, amount };
      const changed = Object.entries(counts).filter(
        ([name, value]) => value !== undefined && one[name] !== value,
      );
      return { ...one, ...Object.fromEntries(changed) };
    }),
  };
}

/** `2026-12-01 09:00` */
export function dateText(instant: Instant): string {
  return formatInstant(instant).slice(0, 16).replace('T', ' ');
}

export function asBlazarSends(instant: Instant): string {
  return formatInstant(instant).slice(0, -1);
}
