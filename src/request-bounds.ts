/** What keeps a request from being dear: whatever fits into a body holds the process for a moment only. */
import { InvalidRequestError } from './errors.ts';

/** Blazar's own leases have a few. */
export const MAX_RESERVATIONS = 1000;
/** In all reservations of a lease together: ten thousand hosts, reserved twice. */
export const MAX_ALLOCATIONS = 20_000;
/** Of users and projects, which stand in logs and messages. Keystone's have no more than 255 characters. */
export const ID_LENGTH = 65_536;

interface Bounded {
  readonly id?: unknown;
  readonly allocations?: readonly object[] | null;
}

/**
 * Throws an `InvalidRequestError` for reservations that would be dear, though there are not too many of them. `lease`: where they
 * stand in the request.
 */
export function refuseDear(lease: string, reservations: readonly Bounded[] | null | undefined): void {
  const ids = new Set<unknown>();
  let allocated = 0;
  for (const [index, { id, allocations }] of (reservations ?? []).entries()) {
    const place = `${lease}.reservations.${index}`;
    allocated += allocations?.length ?? 0;
    if (allocated > MAX_ALLOCATIONS) {
      const expected = `expected at most ${MAX_ALLOCATIONS} allocations in all reservations of a lease, got more`;
      throw new InvalidRequestError(`${place}.allocations`, expected);
    }
    if (id === undefined || id === null) {
      continue;
    }
    if (ids.has(id)) {
      // An update lays each of them over what the lease has under that id, with all of its allocations.
      const expected = 'expected an id that no other reservation of the lease has, got one twice';
      throw new InvalidRequestError(`${place}.id`, expected);
    }
    ids.add(id);
  }
}
