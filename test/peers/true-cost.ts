/** What the leases of a real Blazar cost, to the second: an account of its own, kept without the ledger's code. */
import { MICROSECONDS_PER_SECOND, toInstant } from '../../src/index.ts';
import type { TrueReservation } from './blazar.ts';

/** Units an hour; in tenths, so that nothing is rounded here. */
const TENTHS: Readonly<Record<string, number>> = {
  'physical:host': 10,
  'virtual:instance': 3,
  'virtual:floatingip': 1,
};

/** What was there from one moment to another, in seconds. */
interface Used {
  readonly from: number;
  readonly until: number;
  readonly rate: number;
}

interface Kept {
  readonly used: Used[];
  /** What is there costs from here on. */
  from: number;
  /** `undefined` = it is gone. */
  last: TrueReservation | undefined;
}

/** What runs has changed: by its rates, since when at the latest, and when it was seen. */
interface Moved {
  readonly rates: number;
  readonly since: number;
  readonly seen: number;
}

interface Part {
  readonly isOf?: (reservationId: string) => boolean;
  /** In seconds. */
  readonly from?: number;
  readonly until?: number;
}

/** Blazar is at work on these: what it shows of them is neither what was there nor what will be. */
const AT_WORK = new Set(['CREATING', 'UPDATING', 'STARTING', 'TERMINATING', 'DELETING']);

export class TrueCost {
  readonly #kept = new Map<string, Kept>();
  /** At work whenever they were looked at. */
  readonly #unsure = new Map<string, TrueReservation>();
  readonly #late: number;
  #settledSlack = 0;
  #moved: Moved[] = [];

  /** `late`: how many seconds after a change the ledger may hear of it, beside the time until `heard` is called. */
  constructor({ late = 3 } = {}) {
    this.#late = late;
  }

  /** By how much it may be wrong: a change of what runs is seen, and charged, a moment after it was made. */
  get slack(): number {
    return this.#moved.reduce((sum, one) => sum + this.#slackOf(one), this.#settledSlack);
  }

  #slackOf({ rates, since }: Moved): number {
    return rates * (this.#late + (performance.now() - since) / 1000);
  }

  /** The ledger has heard of what was seen before, as `performance.now()`. */
  heard(before = performance.now()): void {
    const isHeard = ({ seen }: Moved) => seen < before;
    for (const one of this.#moved.filter(isHeard)) {
      this.#settledSlack += this.#slackOf(one);
    }
    this.#moved = this.#moved.filter((one) => !isHeard(one));
  }

  /** `since`: before anything was begun that may have changed since the last look, as `performance.now()`. */
  observe(truth: readonly TrueReservation[], since: number): void {
    const now = Math.floor(Date.now() / 1000);
    const there = new Map(truth.map((one) => [one.reservation_id, one]));
    let rates = 0;
    for (const id of new Set([...this.#kept.keys(), ...there.keys()])) {
      const current = there.get(id);
      const kept = this.#kept.get(id);
      if (current !== undefined && AT_WORK.has(current.status)) {
        if (kept === undefined) {
          this.#unsure.set(id, current);
        }
        continue;
      }
      this.#unsure.delete(id);
      if (kept === undefined) {
        const from = current === undefined ? 0 : second(current.start_date);
        this.#kept.set(id, { used: [], from, last: current });
        continue;
      }
      const before = kept.last;
      if (current === undefined ? before === undefined : before !== undefined && isSame(current, before)) {
        continue;
      }
      if (before !== undefined) {
        const until = Math.min(now, second(before.end_date));
        if (until > kept.from) {
          kept.used.push({ from: kept.from, until, rate: rate(before) });
          rates += rate(before) + (current === undefined ? 0 : rate(current));
        }
      }
      const begins = current === undefined ? now : second(current.start_date);
      kept.from = begins < now && before !== undefined ? now : begins;
      kept.last = current;
    }
    for (const [id, gone] of this.#unsure) {
      if (!there.has(id)) {
        // It may have run, or not.
        this.#unsure.delete(id);
        const ran = Math.min(now, second(gone.end_date)) - second(gone.start_date);
        this.#settledSlack += rate(gone) * Math.max(0, ran);
      }
    }
    if (rates > 0) {
      this.#moved.push({ rates, since, seen: performance.now() });
    }
  }

  /** Whether any of them has run for a time that is over: when it ended is not known to the second. */
  hasRun(ids: ReadonlySet<string>): boolean {
    return [...ids].some((id) => (this.#kept.get(id)?.used.length ?? 0) > 0);
  }

  /** In tenths of a unit, times seconds. */
  total({ isOf = () => true, from = 0, until = Number.POSITIVE_INFINITY }: Part = {}): number {
    let total = 0;
    for (const [id, kept] of this.#kept) {
      if (isOf(id)) {
        for (const one of spansOf(kept)) {
          total += one.rate * Math.max(0, Math.min(one.until, until) - Math.max(one.from, from));
        }
      }
    }
    return total;
  }
}

function spansOf({ used, from, last }: Kept): readonly Used[] {
  return last === undefined ? used : [...used, { from, until: second(last.end_date), rate: rate(last) }];
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
