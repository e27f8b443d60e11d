/** The latest decisions, for people who look at the service. */
import type { Instant } from '../lease/dates.ts';
import type { DecisionRecord } from './record.ts';

/** So many are shown to people. */
const RECENT = 50;

/** When a lease that was refused would have been. People are shown it; the log does not say it. */
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

/** The latest decisions, the newest first. */
export class RecentDecisions {
  readonly #kept: Kept[] = [];
  #next = 0;

  add(record: DecisionRecord, asked?: AskedTime): void {
    this.#kept[this.#next] = { record, asked };
    this.#next = (this.#next + 1) % RECENT;
  }

  list(): DecisionRecord[] {
    return this.#latest().map(({ record }) => record);
  }

  /** Those that refused a lease. */
  refused(): RefusedLease[] {
    return this.#latest().flatMap(({ record, asked }) => (asked === undefined ? [] : { record, ...asked }));
  }

  #latest(): Kept[] {
    return [...this.#kept.slice(this.#next), ...this.#kept.slice(0, this.#next)].reverse();
  }
}
