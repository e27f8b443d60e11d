/** What a lease reserves, in a form that is the same in a new lease, in Blazar's own lease of an update, and in an end. */
import { hash } from 'node:crypto';
import type { Reservation } from '../../lease/lease.ts';

/** Digests without this prefix are from the first version of the tables, and cannot be compared. */
const PREFIX = '2:';

/**
 * A digest of the types and counts of the reservations, in any order. Everything else differs between a request and what Blazar
 * reports: Blazar adds ids and states, replaces the flavor with its own, and picks hosts again.
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

/** Whether a recorded demand can be compared with others. */
export function isComparable(demand: string): boolean {
  return demand.startsWith(PREFIX);
}

/** Of reservations of these types, Blazar keeps only the amount. */
const COUNTED_BY_AMOUNT = new Set(['virtual:instance', 'flavor:instance', 'virtual:floatingip']);

/** Blazar stores numbers; a request may have them as text. */
function written(count: unknown): string {
  return count === undefined || count === null
    ? ''
    : typeof count === 'string'
      ? count.trim()
      : (JSON.stringify(count) ?? '');
}
