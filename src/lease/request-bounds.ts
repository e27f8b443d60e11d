/** What keeps a request from being dear: whatever fits into a body holds the process for a moment only. */
import { InvalidRequestError } from '../errors.ts';

/** Blazar's own leases have a few. */
export const MAX_RESERVATIONS = 500;
/** In all reservations of a lease together: ten thousand hosts, reserved twice. */
export const MAX_ALLOCATIONS = 20_000;
/** Of users and projects, which stand in logs and messages. Keystone's have no more than 255 characters. */
export const ID_LENGTH = 65_536;
/** Of a lease. Blazar's have 80 characters. */
const NAME_LENGTH = 65_536;
/** Of all reservations of a lease, without their allocations: what is compared, and told from other leases by. */
const MAX_RESERVED = 262_144;

interface Reserved {
  readonly id?: unknown;
  readonly allocations?: readonly object[] | null;
}

interface Bounded {
  readonly name?: unknown;
  readonly reservations?: readonly Reserved[] | null;
}

/**
 * Throws an `InvalidRequestError` for a lease that would be dear, though it does not have too many reservations. `lease`: where it
 * stands in the request.
 */
export function refuseDear(lease: string, { name, reservations }: Bounded): void {
  if (typeof name === 'string' && name.length > NAME_LENGTH) {
    const expected = `expected a text of at most ${NAME_LENGTH} characters, got ${name.length}`;
    throw new InvalidRequestError(`${lease}.name`, expected);
  }
  const ids = new Set<unknown>();
  let allocated = 0;
  let reserved = 0;
  for (const [index, reservation] of (reservations ?? []).entries()) {
    const place = `${lease}.reservations.${index}`;
    const { id, allocations } = reservation;
    reserved += sizeWithoutAllocations(reservation, MAX_RESERVED - reserved);
    if (reserved > MAX_RESERVED) {
      const expected = `expected reservations of at most ${MAX_RESERVED} characters together, without their allocations, got more`;
      throw new InvalidRequestError(place, expected);
    }
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

function sizeWithoutAllocations(reservation: Reserved, most: number): number {
  let size = 0;
  for (const [name, value] of Object.entries(reservation)) {
    if (size > most) {
      break;
    }
    size += name === 'allocations' ? 0 : name.length + sizeOf(value, most - size);
  }
  return size;
}

/** Its length as text, more or less; of more than `most` no more is looked at. */
function sizeOf(value: unknown, most: number): number {
  if (typeof value === 'string') {
    return value.length;
  }
  let size = 1;
  if (typeof value === 'object' && value !== null) {
    for (const name in value) {
      if (size > most) {
        break;
      }
      size += name.length + sizeOf((value as Readonly<Record<string, unknown>>)[name], most - size);
    }
  }
  return size;
}
