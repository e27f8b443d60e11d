/** The latest decisions, for the page. */
import type { Instant } from '../lease/dates.ts';
import type { DecisionRecord } from './record.ts';

/** How many are kept. */
const RECENT = 50;

/** The dates of a refused lease. The page shows them; the log does not have them. */
export interface AskedTime {
  readonly start: Instant;
  readonly end: Instant;
}

export interface RefusedLease extends AskedTime {
  readonly record: DecisionRecord;
}

interface Kept {
  readonly record: DecisionRecord;
  readonly asked: AskedTime | undefined;
}

export class RecentDecisions {
  readonly #kept: Kept[] = [];
  #next = 0;

  add(record: DecisionRecord, asked?: AskedTime): void {
    this.#kept[this.#next] = { record, asked };
    this.#next = (this.#next + 1) % RECENT;
  }

  /** The newest first. */
  list(): DecisionRecord[] {
    return this.#latest().map(({ record }) => record);
  }

  /** Decisions that refused a lease, the newest first. */
  refused(): RefusedLease[] {
    return this.#latest().flatMap(({ record, asked }) => (asked === undefined ? [] : { record, ...asked }));
  }

  #latest(): Kept[] {
    return [...this.#kept.slice(this.#next), ...this.#kept.slice(0, this.#next)].reverse();
  }
}
