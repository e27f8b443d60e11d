/** What the leases of a real Blazar cost, to the second: an account of its own, kept without the ledger's code. */
import { MICROSECONDS_PER_SECOND, toInstant } from '../../src/index.ts';
import type { TrueReservation } from './blazar.ts';

/** Units an hour; in tenths, so that nothing is rounded here. */
const TENTHS: Readonly<Record<string, number>> = {
  'physical:host': 10,
  'virtual:instance': 3,
  'virtual:floatingip': 1,
};

interface Kept {
  /** In tenths of a unit, times seconds. */
  used: number;
  /** What is there costs from here on. */
  from: number;
  last: TrueReservation | undefined;
}

export class TrueCost {
  readonly #kept = new Map<string, Kept>();
  readonly #late: number;
  #settledSlack = 0;
  /** What changed at the last look, by its rates, and since when. */
  #moved = { rates: 0, since: 0 };

  /** `late`: how many seconds after a change the ledger may hear of it, beside the time until it is looked again. */
  constructor({ late = 3 } = {}) {
    this.#late = late;
  }

  /** By how much it may be wrong: a change of what runs is seen, and charged, a moment after it was made. */
  get slack(): number {
    const { rates, since } = this.#moved;
    return this.#settledSlack + rates * (this.#late + (performance.now() - since) / 1000);
  }

  /** `since`: before what was done last, as `performance.now()`. */
  observe(truth: readonly TrueReservation[], since: number): void {
    this.#settledSlack = this.slack;
    this.#moved = { rates: 0, since };
    const now = Math.floor(Date.now() / 1000);
    const there = new Map(truth.map((one) => [one.reservation_id, one]));
    for (const id of new Set([...this.#kept.keys(), ...there.keys()])) {
      const current = there.get(id);
      const kept = this.#kept.get(id);
      if (kept === undefined) {
        this.#kept.set(id, {
          used: 0,
          from: current === undefined ? 0 : second(current.start_date),
          last: current,
        });
        continue;
      }
      if (current !== undefined && kept.last !== undefined && isSame(current, kept.last)) {
        continue;
      }
      const before = kept.last;
      if (before !== undefined) {
        const until = Math.min(now, second(before.end_date));
        const hasRun = until > kept.from;
        kept.used += hasRun ? rate(before) * (until - kept.from) : 0;
        this.#moved.rates += hasRun ? rate(before) + (current === undefined ? 0 : rate(current)) : 0;
      }
      const begins = current === undefined ? now : second(current.start_date);
      kept.from = begins < now && before !== undefined ? now : begins;
      kept.last = current;
    }
  }

  /** `isOf`: only of the leases that are there and of which it says so. */
  total(isOf?: (leaseId: string) => boolean): number {
    let total = 0;
    for (const { used, from, last } of this.#kept.values()) {
      if (isOf !== undefined && (last === undefined || !isOf(last.lease_id))) {
        continue;
      }
      total += used + (last === undefined ? 0 : rate(last) * Math.max(0, second(last.end_date) - from));
    }
    return total;
  }
}

function isSame(one: TrueReservation, other: TrueReservation): boolean {
  return (
    one.start_date === other.start_date &&
    one.end_date === other.end_date &&
    one.resources === other.resources
  );
}

function rate({ resource_type, resources }: TrueReservation): number {
  return (TENTHS[resource_type] ?? 0) * resources;
}

function second(date: string): number {
  return Number((toInstant(date.replace(' ', 'T')) ?? 0n) / MICROSECONDS_PER_SECOND);
}
