/** Which resources a lease reserves, as the ledger records it: for people, who see hours of hosts and addresses. No limit depends on it. */
import type { Reservation } from '../../lease/lease.ts';
import { reservationSize } from '../../lease/reservations.ts';

/** How many of each resource type a lease has had, until a second of the epoch; `undefined` = since then. */
export interface ResourcePeriod {
  readonly until: bigint | undefined;
  readonly counts: ReadonlyMap<string, number>;
}

/** What is beyond these is forgotten: the row of a lease stays small. */
const MAX_TYPES = 16;
const MAX_PERIODS = 32;
const OTHERS = 'other';

/**
 * The column `resources` of a lease with these reservations, which replaces what is `recorded`. `begun`: the second up to which the lease has
 * run with what is recorded; `undefined` = it has not.
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

/** Oldest first. Empty = nobody knows: it was recorded by an older version. Throws an `Error` for a text that is not from `recordedResources`. */
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
