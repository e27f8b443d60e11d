/** For a lease service that embeds the library: Blazar's own values → the context and the lease of a request. */
import { InvalidRequestError } from '../base/errors.ts';
import type { Allocation, Context, Lease, Reservation } from './lease.ts';
import { isContext, kindOf, validated } from './request.ts';
import { contextSchema } from './request-schemas.ts';

/** The part of every context that comes from the configuration of the lease service. */
export interface ContextDetails {
  readonly authUrl: string;
  readonly regionName: string | null;
}

/** The context of a request, from the values of its lease. Source: Blazar, `format_context`. */
export function formatContext(leaseValues: Lease, details: ContextDetails): Context {
  const context = {
    user_id: leaseValues.user_id,
    project_id: leaseValues.project_id,
    auth_url: details.authUrl,
    region_name: details.regionName,
  };
  return isContext(context) ? context : (validated(contextSchema, context) as Context);
}

/**
 * The lease of a request, from Blazar's own arguments: the lease values, its reservations, and the allocations by
 * resource type. The arguments are not changed. Throws `InvalidRequestError` for a reservation without a resource type,
 * and for a resource type without allocations. Source: Blazar, `format_lease`.
 */
export function formatLease(
  leaseValues: Lease,
  reservations: readonly Reservation[],
  allocations: Readonly<Record<string, readonly Allocation[]>>,
): Lease {
  return withMembers(leaseValues, {
    reservations: reservations.map((reservation, index) => {
      const type = reservation.resource_type;
      if (typeof type !== 'string' || !Object.hasOwn(allocations, type)) {
        const known = Object.keys(allocations).join(', ');
        throw new InvalidRequestError(
          `reservations.${index}.resource_type`,
          `expected a resource type that has allocations (${known === '' ? 'there are none' : known}), got ${kindOf(type)}`,
        );
      }
      return withMembers(reservation, { allocations: allocations[type] ?? [] });
    }),
  });
}

/**
 * `{ ...values, ...members }` in a sixth of the time: V8 makes a new hidden class for each object that gets a
 * member after a spread, which also slows down its readers. `Object.assign` would give a copy of `__proto__`
 * another prototype.
 */
function withMembers<Values extends object, Members extends object>(
  values: Values,
  members: Members,
): Values & Members {
  return Object.hasOwn(values, '__proto__') ? { ...values, ...members } : Object.assign({}, values, members);
}
