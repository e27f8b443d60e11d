/** The latest decisions, for the console. */
import type { Instant } from '../lease/dates.ts';
import type { DecisionRecord } from './record.ts';

/** How many are kept. */
const RECENT = 50;

/** The dates of a refused lease. The page shows them; the log does not have them. */
export interface AskedTime {
  readonly start: Instant;
  readonly end: Instant;
}

interface RefusedLease extends AskedTime {
  readonly record: DecisionRecord;
}

interface Kept {
  readonly record: DecisionRecord;
  readonly asked: AskedTime | undefined;
}

export class RecentDecisions {
  readonly #kept: Kept[] = [];
  readonly #heardBy = new Set<(record: DecisionRecord) => void>();
  #next = 0;

  add(record: DecisionRecord, asked?: AskedTime): void {
    this.#kept[this.#next] = { record, asked };
    this.#next = (this.#next + 1) % RECENT;
    for (const hear of this.#heardBy) {
      hear(record);
    }
  }

  /** Calls `listener`, which must be quick, with each decision. Returns what ends it. */
  hear(listener: (record: DecisionRecord) => void): () => void {
    this.#heardBy.add(listener);
    return () => void this.#heardBy.delete(listener);
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
