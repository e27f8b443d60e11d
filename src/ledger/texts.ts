/** Which texts the ledger stores: the same on both databases. */

import type { LeaseRequest } from '../filter/services.ts';
import type { Lease } from '../lease/lease.ts';
import { nameOf, wellFormed } from './identity.ts';

/** OpenStack's own ids and names are shorter, and an index of PostgreSQL holds about 2,700 bytes. */
const LONGEST = 255;

/** Why a text cannot be stored, for its sender; `undefined` = it can. */
export function textMistake(text: string, longest = LONGEST): string | undefined {
  if (text.length > longest) {
    return `expected at most ${longest} characters, got ${text.length}`;
  }
  // PostgreSQL, or no database, stores these. Replacing them would make two different texts equal.
  return text.includes('\0') || !text.isWellFormed()
    ? 'expected a text without NUL and without halves of surrogate pairs'
    : undefined;
}

/** The first text of a request that cannot be stored: `lease.name: expected …`. */
export function requestMistake({ context, currentLease, lease }: LeaseRequest): string | undefined {
  return (
    fieldMistake('context.', 'project_id', context.project_id) ??
    fieldMistake('context.', 'user_id', context.user_id) ??
    fieldMistake('context.', 'region_name', context.region_name) ??
    leaseMistake('lease.', lease) ??
    (currentLease && leaseMistake('current_lease.', currentLease))
  );
}

function leaseMistake(place: string, { id, name, reservations }: Lease): string | undefined {
  const mistake =
    fieldMistake(place, 'id', id) ??
    // A long name is stored as its beginning and a digest.
    fieldMistake(place, 'name', name, Number.POSITIVE_INFINITY);
  for (let index = 0; mistake === undefined && index < (reservations?.length ?? 0); index += 1) {
    const found = fieldMistake(
      place,
      `reservations[${index}].resource_type`,
      reservations?.[index]?.resource_type,
    );
    if (found !== undefined) {
      return found;
    }
  }
  return mistake;
}

function fieldMistake(place: string, field: string, text: unknown, longest?: number): string | undefined {
  const mistake = typeof text === 'string' ? textMistake(text, longest) : undefined;
  return mistake === undefined ? undefined : `${place}${field}: ${mistake}`;
}

/** The name of an existing lease in a form that can be stored: unlike a new one, it cannot be refused. */
export function keptName(name: string): string {
  const lease = { name: wellFormed(name).replaceAll('\0', '\ufffd') };
  return nameOf([lease, lease]);
}
