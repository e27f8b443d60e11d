/** What a lease asks for, in one form: the same in a new lease, in Blazar's own lease of an update, and in an end. */
import { hash } from 'node:crypto';
import type { Reservation } from '../lease/lease.ts';

/** Rows of the first version of the tables have digests without it, which can't be compared with these. */
const PREFIX = '2:';

/**
 * A digest of the types and counts of the reservations, in any order. Everything else differs between what was asked for and what
 * Blazar reports: it adds ids and states, replaces the flavour by one of its own, and looks for hosts once more.
 */
export function demandOf(reservations: readonly Reservation[]): string {
  const counts = reservations.map((reservation) => {
    const { resource_type: type = '', min, max, amount } = reservation;
    const asked = COUNTED_BY_AMOUNT.has(type)
      ? [amount]
      : type === 'physical:host'
        ? [min, max]
        : [min, max, amount];
    return JSON.stringify([type, ...asked.map(written)]);
  });
  return `${PREFIX}${hash('sha256', counts.sort().join('\n'), 'base64url')}`;
}

/** Whether a row says what its lease asked for in this form. */
export function isComparable(demand: string): boolean {
  return demand.startsWith(PREFIX);
}

/** What else stands in a reservation of these, Blazar forgets. */
const COUNTED_BY_AMOUNT = new Set(['virtual:instance', 'flavor:instance', 'virtual:floatingip']);

/** Blazar keeps numbers; who asks may write them as text. */
function written(count: unknown): string {
  return count === undefined || count === null
    ? ''
    : typeof count === 'string'
      ? count.trim()
      : (JSON.stringify(count) ?? '');
}
