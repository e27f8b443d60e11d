/** Which texts the ledger stores: the same on both databases. */

import type { LeaseRequest } from '../filter/services.ts';
import type { Lease } from '../lease/lease.ts';
import { nameOf, wellFormed } from './identity.ts';

/** OpenStack's own ids and names are shorter, and an index of PostgreSQL holds about 2,700 bytes. */
const LONGEST = 255;
/** Characters that PostgreSQL, or no database, stores. Replacing them would make two different texts equal. */
const UNKEPT = /\0|\p{Surrogate}/u;

/** Why a text cannot be stored, for its sender; `undefined` = it can. */
export function textMistake(text: string, longest = LONGEST): string | undefined {
  if (text.length > longest) {
    return `expected at most ${longest} characters, got ${text.length}`;
  }
  return UNKEPT.test(text) ? 'expected a text without NUL and without halves of surrogate pairs' : undefined;
}

/** The first text of a request that cannot be stored: `lease.name: expected …`. */
export function requestMistake({ context, currentLease, lease }: LeaseRequest): string | undefined {
  const texts: [string, unknown, number?][] = [
    ['context.project_id', context.project_id],
    ['context.user_id', context.user_id],
    ['context.region_name', context.region_name],
    ...leaseTexts('lease', lease),
    ...(currentLease === undefined ? [] : leaseTexts('current_lease', currentLease)),
  ];
  for (const [field, text, longest] of texts) {
    const mistake = typeof text === 'string' ? textMistake(text, longest) : undefined;
    if (mistake !== undefined) {
      return `${field}: ${mistake}`;
    }
  }
  return undefined;
}

function leaseTexts(place: string, { id, name, reservations }: Lease): [string, unknown, number?][] {
  return [
    [`${place}.id`, id],
    // A long name is stored as its beginning and a digest.
    [`${place}.name`, name, Number.POSITIVE_INFINITY],
    ...(reservations ?? []).map(({ resource_type }, index): [string, unknown] => [
      `${place}.reservations[${index}].resource_type`,
      resource_type,
    ]),
  ];
}

/** The name of an existing lease in a form that can be stored: unlike a new one, it cannot be refused. */
export function keptName(name: string): string {
  const lease = { name: wellFormed(name).replaceAll('\0', '\ufffd') };
  return nameOf([lease, lease]);
}
