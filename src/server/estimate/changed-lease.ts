/**
 * A change of a lease in the ledger, as users send it to Blazar (`PUT /v1/leases/{id}`), and as Blazar passes
 * it to the filters. Source: Blazar, `update_lease` and `_check_for_invalid_date_inputs` of its manager.
 */
import { z } from 'zod';
import type { Wait } from '../../base/deadline.ts';
import { type Instant, leaseEnd, leaseStart, toInstant } from '../../lease/dates.ts';
import type { Context, Lease, Reservation, UpdateRequest } from '../../lease/lease.ts';
import { type RecordedLease, recordedLeases } from '../../ledger/reports/one-lease.ts';
import { ApiError } from '../api/route.ts';
import { ledgerFor } from '../budgets/named-accounts.ts';
import type { Generation } from '../configuration/generation.ts';
import { type Caller, visibleProjects } from '../users/caller.ts';
import {
  asBlazarSends,
  countSchema,
  dateSchema,
  dateText,
  MINUTE,
  UnusableLeaseError,
} from './wanted-lease.ts';

const MOST_TYPES = 20;

export const leaseChangeSchema = z.strictObject({
  start_date: dateSchema.optional().meta({
    description:
      'In UTC, to the minute; `now` = the current minute. Only for a lease that has not begun. Default: unchanged.',
  }),
  end_date: dateSchema.optional().meta({ description: 'In UTC, to the minute. Default: unchanged.' }),
  reservations: z
    .array(
      z.strictObject({
        resource_type: z
          .string('expected a text')
          .max(255)
          .meta({ description: 'A type that the lease has reserved.', examples: ['physical:host'] }),
        min: countSchema
          .optional()
          .meta({ description: 'The minimum number of hosts. Default: unchanged, or max.' }),
        max: countSchema.optional().meta({ description: 'The maximum number of hosts.' }),
        amount: countSchema.optional().meta({ description: 'The number of anything else.' }),
      }),
      'expected a list',
    )
    .max(MOST_TYPES, `expected at most ${MOST_TYPES} reservations`)
    .default([])
    .meta({ description: 'New numbers. Missing types stay unchanged.' }),
});

export type LeaseChange = z.infer<typeof leaseChangeSchema>;

interface Looking {
  readonly caller: Caller;
  readonly generation: Generation;
  readonly deadline: Wait & { readonly milliseconds: number };
}

/**
 * A lease that the caller may estimate, by Blazar's id. `projectId`: only in this project.
 *
 * @throws ApiError 404, the same for a lease of another project and a missing one; 409 = it cannot be changed
 */
export async function changeableLease(
  { caller, generation, deadline }: Looking,
  leaseId: string,
  projectId?: string,
): Promise<RecordedLease> {
  const ledger = await ledgerFor({ generation, deadline });
  const projectIds = projectId === undefined ? visibleProjects(caller) : [projectId];
  const found = await recordedLeases(ledger, leaseId, projectIds, deadline);
  const lease = found.find(({ isEnded }) => !isEnded) ?? found[0];
  if (lease === undefined) {
    throw new ApiError(404, 'there is no lease with this id');
  }
  if (lease.isEnded) {
    throw new ApiError(409, 'the lease has ended: it cannot be changed');
  }
  if (lease.reservations.length === 0) {
    throw new ApiError(
      409,
      'the ledger does not have all reservations of the lease: it has too many types, or an older version recorded it',
    );
  }
  return lease;
}

/** Whether Blazar rejects another start. Leases that begin in the current minute may still be moved. */
export function hasBegun({ start }: RecordedLease, now: Instant): boolean {
  return start < now - (now % MINUTE);
}

/** Blazar's request to the filters at `now`. @throws UnusableLeaseError if Blazar would reject it first */
export function changeRequest(
  lease: RecordedLease,
  { start_date, end_date, reservations }: LeaseChange,
  { auth_url }: Pick<Context, 'auth_url'>,
  now: Instant,
): UpdateRequest {
  const minute = now - (now % MINUTE);
  const at = (text: string | undefined, before: Instant) =>
    text === undefined ? before : text === 'now' ? minute : (toInstant(text) ?? before);
  const start = at(start_date, lease.start);
  const end = at(end_date, lease.end);
  if (start !== lease.start && hasBegun(lease, now)) {
    throw new UnusableLeaseError('start_date', 'expected the start that it has: the lease has begun');
  }
  if (start !== lease.start && start < minute) {
    throw new UnusableLeaseError('start_date', 'expected a date that is not past');
  }
  if (end < minute || end < start) {
    const limit = end < minute ? 'past' : 'before start_date';
    throw new UnusableLeaseError('end_date', `expected a date that is not ${limit}`);
  }
  const current = lease.reservations.map((one) => ({ ...one, allocations: [] }));
  const { leaseId: id, name, userId: user_id, projectId: project_id, region } = lease;
  return {
    context: { user_id, project_id, auth_url: auth_url ?? null, region_name: region || null },
    currentLease: {
      id,
      name,
      user_id,
      project_id,
      status: hasBegun(lease, now) ? 'ACTIVE' : 'PENDING',
      start_date: asBlazarSends(lease.start),
      end_date: asBlazarSends(lease.end),
      reservations: current,
    },
    lease: {
      start_date: asBlazarSends(start),
      end_date: asBlazarSends(end),
      reservations: resized(current, reservations),
    },
  };
}

type Current = RecordedLease['reservations'];

function resized(current: Current, wanted: LeaseChange['reservations']): Reservation[] {
  const byType = new Map<string, LeaseChange['reservations'][number]>();
  for (const [index, one] of wanted.entries()) {
    const refuse = (field: string, expected: string): never => {
      throw new UnusableLeaseError(`reservations.${index}.${field}`, `expected ${expected}`);
    };
    if (!current.some(({ resource_type }) => resource_type === one.resource_type)) {
      refuse('resource_type', `a type of the lease: ${current.map((own) => own.resource_type).join(', ')}`);
    }
    if (byType.has(one.resource_type)) {
      refuse('resource_type', 'each type once');
    }
    const isOfHosts = one.resource_type === 'physical:host';
    if (isOfHosts && one.amount !== undefined) {
      refuse('amount', 'min and max, for hosts');
    }
    if (!isOfHosts && (one.min ?? one.max) !== undefined) {
      refuse(one.min === undefined ? 'max' : 'min', 'amount, for anything but hosts');
    }
    byType.set(one.resource_type, one);
  }
  return current.map((own) => {
    const { min, max, amount } = byType.get(own.resource_type) ?? {};
    if (own.resource_type !== 'physical:host') {
      return { ...own, ...(amount !== undefined && { amount }) };
    }
    const most = max ?? Number(own.max);
    const least = min ?? Math.min(Number(own.min), most);
    if (least > most) {
      const index = wanted.findIndex(({ resource_type }) => resource_type === own.resource_type);
      throw new UnusableLeaseError(`reservations.${index}.max`, 'expected a number that is not below min');
    }
    return { ...own, min: least, max: most };
  });
}

/** The change that leads to this lease: unchanged attributes are omitted. */
export function changeTo({ currentLease }: UpdateRequest, lease: Lease): Partial<LeaseChange> {
  const start = leaseStart(lease);
  const end = leaseEnd(lease);
  const isOther = (at: Instant | undefined, before: Instant | undefined): at is Instant =>
    at !== undefined && at !== before;
  const reservations = (lease.reservations ?? []).flatMap((one, index) => {
    const { resource_type = '', min, max, amount } = one;
    const before = currentLease.reservations?.[index];
    return min === before?.min && max === before?.max && amount === before?.amount
      ? []
      : [
          {
            resource_type,
            ...(amount === undefined ? { min: Number(min), max: Number(max) } : { amount: Number(amount) }),
          },
        ];
  });
  return {
    ...(isOther(start, leaseStart(currentLease)) && { start_date: dateText(start) }),
    ...(isOther(end, leaseEnd(currentLease)) && { end_date: dateText(end) }),
    ...(reservations.length > 0 && { reservations }),
  };
}
