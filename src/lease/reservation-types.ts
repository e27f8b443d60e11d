/**
 * Every reservation of a lease, as it is to be, says what it reserves: no limit of a resource type would see another. Blazar sends
 * `resource_type` with each of them, in both leases of an update too.
 */
import { InvalidRequestError } from '../errors.ts';

/** What is looked at of a reservation. */
interface Typed {
  readonly id?: unknown;
  readonly resource_type?: string | undefined;
}

interface WithReservations {
  readonly reservations?: readonly Typed[] | null | undefined;
}

/**
 * An update may leave the type out of a reservation that the current lease has by the same id. Throws `InvalidRequestError` naming
 * the first one that has none. The cost is linear.
 */
export function refuseTypeless(lease: WithReservations, currentLease: WithReservations = {}): void {
  const current = currentLease.reservations ?? [];
  const reservations = lease.reservations ?? [];
  const ids = reservations.every(({ resource_type }) => resource_type !== undefined)
    ? undefined
    : new Set(current.flatMap(({ id }) => (typeof id === 'string' ? [id] : [])));
  const isKnown = ({ id, resource_type }: Typed) =>
    resource_type === undefined && typeof id === 'string' && ids?.has(id) === true;
  refuse(
    'lease',
    reservations.findIndex((one) => isTypeless(one) && !isKnown(one)),
  );
  refuse('current_lease', current.findIndex(isTypeless));
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

/** `refuseTypeless` as JSON Schema, but for whether an id is one of the current lease. */
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
