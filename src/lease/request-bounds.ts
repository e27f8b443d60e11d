/** Bounds that keep any request cheap: whatever fits into a body occupies the process only for a moment. */
import { InvalidRequestError } from '../errors.ts';

/** Of one lease. Real leases have a few. */
export const MAX_RESERVATIONS = 500;
/** Of all reservations of a lease together: enough for ten thousand hosts, reserved twice. */
export const MAX_ALLOCATIONS = 20_000;
/** In characters, for ids of users and projects, which appear in logs and messages. Keystone's have at most 255. */
export const ID_LENGTH = 65_536;
/** In characters, for names of leases. Blazar's have at most 80. */
const NAME_LENGTH = 65_536;
/** In characters, for all reservations of a lease without their allocations: the part that identifies a lease. */
const MAX_RESERVED = 262_144;

interface Reserved {
  readonly id?: unknown;
  readonly allocations?: readonly object[] | null;
}

interface Bounded {
  readonly name?: unknown;
  readonly reservations?: readonly Reserved[] | null;
}

/** Throws `InvalidRequestError` for a lease that exceeds a bound other than `MAX_RESERVATIONS`. `lease`: its name in the request. */
export function refuseDear(lease: string, { name, reservations }: Bounded): void {
  if (typeof name === 'string' && name.length > NAME_LENGTH) {
    const expected = `expected a text of at most ${NAME_LENGTH} characters, got ${name.length}`;
    throw new InvalidRequestError(`${lease}.name`, expected);
  }
  // Every request comes here, so nothing is made that most do not need: iterators, texts, a set.
  let ids: Set<unknown> | undefined;
  let allocated = 0;
  let reserved = 0;
  for (let index = 0; index < (reservations?.length ?? 0); index += 1) {
    const reservation = reservations?.[index] as Reserved;
    const place = () => `${lease}.reservations.${index}`;
    const { id, allocations } = reservation;
    reserved += sizeWithoutAllocations(reservation, MAX_RESERVED - reserved);
    if (reserved > MAX_RESERVED) {
      const expected = `expected reservations of at most ${MAX_RESERVED} characters together, without their allocations, got more`;
      throw new InvalidRequestError(place(), expected);
    }
    allocated += allocations?.length ?? 0;
    if (allocated > MAX_ALLOCATIONS) {
      const expected = `expected at most ${MAX_ALLOCATIONS} allocations in all reservations of a lease, got more`;
      throw new InvalidRequestError(`${place()}.allocations`, expected);
    }
    if (id === undefined || id === null) {
      continue;
    }
    if (ids?.has(id)) {
      // An update merges each reservation with the current one of that id, allocations included.
      const expected = 'expected an id that no other reservation of the lease has, got one twice';
      throw new InvalidRequestError(`${place()}.id`, expected);
    }
    ids ??= new Set();
    ids.add(id);
  }
}

function sizeWithoutAllocations(reservation: Reserved, most: number): number {
  let size = 0;
  for (const name in reservation) {
    if (size > most) {
      break;
    }
    const value = (reservation as Readonly<Record<string, unknown>>)[name];
    size += name === 'allocations' ? 0 : name.length + sizeOf(value, most - size);
  }
  return size;
}

/** Roughly the length of the value as JSON. Stops counting above `most`. */
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
