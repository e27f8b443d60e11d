/** Which texts the ledger keeps: the same on every database, whatever each of them could. */

import type { LeaseRequest } from '../filter/services.ts';
import type { Lease } from '../lease/lease.ts';
import { nameOf, wellFormed } from './identity.ts';

/** OpenStack's own ids and names are shorter, and an index of PostgreSQL holds some 2,700 bytes of several texts. */
const LONGEST = 255;
/** No database keeps the one, nor PostgreSQL the other; to keep something else instead would make two texts one. */
const UNKEPT = /\0|\p{Surrogate}/u;

/** What is wrong with a text, for whoever sent it; `undefined` = nothing. */
export function textMistake(text: string, longest = LONGEST): string | undefined {
  if (text.length > longest) {
    return `expected at most ${longest} characters, got ${text.length}`;
  }
  return UNKEPT.test(text) ? 'expected a text without NUL and without halves of surrogate pairs' : undefined;
}

/** The first text of a request that the ledger does not keep: `lease.name: expected …`. */
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
    // A long one is kept as its beginning and a digest.
    [`${place}.name`, name, Number.POSITIVE_INFINITY],
    ...(reservations ?? []).map(({ resource_type }, index): [string, unknown] => [
      `${place}.reservations[${index}].resource_type`,
      resource_type,
    ]),
  ];
}

/** The name of a lease that is there, whoever named it, as the ledger keeps it. */
export function keptName(name: string): string {
  const lease = { name: wellFormed(name).replaceAll('\0', '\ufffd') };
  return nameOf([lease, lease]);
}
