/** Leases with fewer resources: never fewer than `min`, never none. */

import { onOneLine } from '../../base/visible-text.ts';
import type { Lease, Reservation } from '../../lease/lease.ts';
import { spread } from './nearest.ts';
import type { Way } from './way.ts';

/** The count of a reservation that can be smaller. */
interface Count {
  readonly index: number;
  readonly type: string;
  readonly field: 'max' | 'amount';
  readonly most: number;
  readonly least: number;
}

/** Reservations of more leases than these are made smaller together only. */
const MOST_APART = 4;
/** In so many steps, all reservations of a lease become as small as they can be. */
const TOGETHER = 64;
const MAX_TYPE = 80;

/** Each reservation by itself, and all of them together. */
export function smaller(lease: Lease): { readonly apart: Way[]; readonly together: Way | undefined } {
  const counts = (lease.reservations ?? []).flatMap((one, index) => countOf(one, index) ?? []);
  const total = counts.reduce((sum, { most }) => sum + most, 0);
  const apart =
    counts.length > MOST_APART ? [] : counts.map((one) => wayOf(lease, [one], one.most - one.least, total));
  const together = counts.length < 2 ? undefined : wayOf(lease, counts, TOGETHER, total);
  return { apart, together };
}

function wayOf(lease: Lease, counts: readonly Count[], far: number, total: number): Way {
  // Multiplied first: with one count, each step takes away exactly one.
  const at = (step: number) =>
    counts.map((one) => ({ ...one, left: one.most - Math.ceil(((one.most - one.least) * step) / far) }));
  return {
    change: 'smaller',
    line: { far, guesses: [], landmarks: spread(far) },
    leaseAt: (step) => withCounts(lease, at(step)),
    lossAt: (step) => at(step).reduce((sum, { most, left }) => sum + most - left, 0) / total,
    textAt: (step) => {
      const parts = at(step).filter(({ most, left }) => left < most);
      const shown = parts
        .slice(0, MOST_APART)
        .map(({ type, most, left }) => `${left} instead of ${most} of ${type}`);
      const more = parts.length > shown.length ? `, and less of ${parts.length - shown.length} others` : '';
      return `Ask for at most ${shown.join(', ')}${more}.`;
    },
  };
}

function withCounts(lease: Lease, counts: readonly (Count & { readonly left: number })[]): Lease {
  const byIndex = new Map(counts.map((one) => [one.index, one]));
  const reservations = (lease.reservations ?? []).map((one, index): Reservation => {
    const count = byIndex.get(index);
    if (count === undefined || count.left === count.most) {
      return one;
    }
    const { field, left } = count;
    return { ...one, [field]: typeof one[field] === 'string' ? String(left) : left };
  });
  return { ...lease, reservations };
}

/** `undefined` = it says nothing that could be smaller. */
function countOf(reservation: Reservation, index: number): Count | undefined {
  const { resource_type: type = '', min, max, amount } = reservation;
  const field = type === 'physical:host' || amount === undefined || amount === null ? 'max' : 'amount';
  const most = whole(field === 'max' ? max : amount);
  const least = field === 'max' ? Math.max(1, whole(min) ?? 1) : 1;
  return most === undefined || most <= least
    ? undefined
    : { index, type: onOneLine(type.slice(0, MAX_TYPE)), field, most, least };
}

function whole(written: unknown): number | undefined {
  const count = typeof written === 'string' && /^\d{1,15}$/.test(written) ? Number(written) : written;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}
