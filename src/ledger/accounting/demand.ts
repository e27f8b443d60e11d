/**
 * The reservations of a lease, in a form that is the same for a new lease, for the current lease of an
 * update, and for an end.
 */
import { hash } from 'node:crypto';
import { type Reservation, reservationSize } from '../../lease/lease.ts';

/** Digests without this prefix are from the first version of the tables, and cannot be compared. */
const PREFIX = '2:';

/**
 * A digest of the types and counts of the reservations, in any order. Everything else differs between a
 * request and Blazar's list: Blazar adds ids and states, replaces the flavor, and picks hosts again.
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

/** Blazar stores numbers; a request may contain text. */
function written(count: unknown): string {
  const asked = count ?? '';
  return typeof asked === 'string' ? asked.trim() : (JSON.stringify(asked) ?? '');
}

/** Counts per resource type, until a second of the epoch; `undefined` = still valid. */
interface ResourcePeriod {
  readonly until: bigint | undefined;
  readonly counts: ReadonlyMap<string, number>;
}

/** Limit the size of a row: more types count as `OTHERS`, the oldest periods are dropped. */
const MAX_TYPES = 16;
const MAX_PERIODS = 32;
/** The sum of all types beyond `MAX_TYPES`. */
export const OTHERS = 'other';
/** The column `resources` of a lease that was requested without reservations. */
export const NO_RESOURCES = '[[null,[]]]';

/**
 * The column `resources` of a lease with these reservations; replaces `recorded`. `begun`: the second up to
 * which the lease has run with what is recorded; `undefined` = not started.
 */
export function recordedResources(
  reservations: readonly Reservation[],
  recorded: string | null,
  begun?: bigint,
): string | null {
  if (reservations.length === 0) {
    return recorded;
  }
  const counts = writtenCounts(reservations);
  const before = recorded === null ? [] : writtenPeriods(recorded);
  const past = before.slice(0, -1);
  const last = before.at(-1);
  if (last !== undefined && begun !== undefined && JSON.stringify(last[1]) !== JSON.stringify(counts)) {
    past.push([String(begun), last[1]]);
  }
  return JSON.stringify([...past.slice(-MAX_PERIODS), [null, counts]]);
}

/**
 * Oldest first. Empty = unknown: recorded by an older version. Throws an `Error` for a text that is not from
 * `recordedResources`.
 */
export function resourcePeriods(recorded: string | null): ResourcePeriod[] {
  return recorded === null
    ? []
    : writtenPeriods(recorded).map(([until, counts]) => ({
        until: until === null ? undefined : BigInt(until),
        counts: new Map(counts),
      }));
}

type Counts = readonly (readonly [string, number])[];
type Period = readonly [string | null, Counts];

/** Sorted by type, so that equal counts are equal texts. */
function writtenCounts(reservations: readonly Reservation[]): Counts {
  const sums = new Map<string, number>();
  for (const reservation of reservations) {
    const type = reservation.resource_type ?? '';
    const known = sums.has(type) || sums.size < MAX_TYPES ? type : OTHERS;
    const sum = (sums.get(known) ?? 0) + (reservationSize(reservation) ?? 0);
    sums.set(known, Math.min(sum, Number.MAX_SAFE_INTEGER));
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
}

function writtenPeriods(text: string): Period[] {
  const written: unknown = JSON.parse(text);
  if (!Array.isArray(written)) {
    throw new TypeError('expected periods as a list');
  }
  return written as Period[];
}
