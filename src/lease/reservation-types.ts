/**
 * Every reservation needs a resource type: limits are per type, and would not see a reservation without one. Blazar sends
 * `resource_type` with each reservation, in both leases of an update.
 */
import { InvalidRequestError } from '../errors.ts';

/** The part of a reservation that is checked. */
interface Typed {
  readonly id?: unknown;
  readonly resource_type?: string | undefined;
}

interface WithReservations {
  readonly reservations?: readonly Typed[] | null | undefined;
}

/**
 * Throws `InvalidRequestError` for the first reservation without a type. A reservation of an update may lack it if the current
 * lease has a reservation with the same id. `currentName`: what the request calls the current lease. The cost is linear.
 */
export function refuseTypeless(
  lease: WithReservations,
  currentLease: WithReservations = {},
  currentName = 'current_lease',
): void {
  const current = currentLease.reservations ?? [];
  const reservations = lease.reservations ?? [];
  // Most requests end here, before anything is made for the others.
  if (!reservations.some(isTypeless) && !current.some(isTypeless)) {
    return;
  }
  const ids = new Set(current.flatMap(({ id }) => (typeof id === 'string' ? [id] : [])));
  const isKnown = ({ id, resource_type }: Typed) =>
    resource_type === undefined && typeof id === 'string' && ids.has(id);
  refuse(
    'lease',
    reservations.findIndex((one) => isTypeless(one) && !isKnown(one)),
  );
  refuse(currentName, current.findIndex(isTypeless));
}

function isTypeless({ resource_type }: Typed): boolean {
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

/** `refuseTypeless` as JSON Schema, which cannot look up an id in the current lease. */
export function typesRequired({ update }: { readonly update: boolean }): object {
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
