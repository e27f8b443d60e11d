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

export interface RefusedLease extends AskedTime {
  readonly record: DecisionRecord;
}

/** A decision that is kept. */
export interface KeptDecision {
  readonly record: DecisionRecord;
  readonly asked: AskedTime | undefined;
}

export class RecentDecisions {
  readonly #kept: KeptDecision[] = [];
  readonly #heardBy = new Set<(record: DecisionRecord) => void>();
  #next = 0;
  /** Of other processes of the service, the newest first. */
  #others: readonly KeptDecision[] = [];

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

  /** Whether somebody listens. */
  get isHeard(): boolean {
    return this.#heardBy.size > 0;
  }

  /** What other processes of the service have decided, as `own` of each says. Listeners hear what is new. */
  setOthers(others: readonly KeptDecision[]): void {
    const known = new Set(this.#others.map(({ record }) => record.request_id));
    this.#others = newestFirst(others).slice(0, RECENT);
    for (const { record } of this.#others.filter((one) => !known.has(one.record.request_id)).reverse()) {
      for (const hear of this.#heardBy) {
        hear(record);
      }
    }
  }

  /** Those of this process, the newest first. */
  own(): KeptDecision[] {
    return [...this.#kept.slice(this.#next), ...this.#kept.slice(0, this.#next)].reverse();
  }

  /** The newest first. */
  list(): DecisionRecord[] {
    return this.#latest().map(({ record }) => record);
  }

  /** Decisions that refused a lease, the newest first. */
  refused(): RefusedLease[] {
    return this.#latest().flatMap(({ record, asked }) => (asked === undefined ? [] : { record, ...asked }));
  }

  #latest(): KeptDecision[] {
    return this.#others.length === 0
      ? this.own()
      : newestFirst([...this.own(), ...this.#others]).slice(0, RECENT);
  }
}

function newestFirst(decisions: readonly KeptDecision[]): KeptDecision[] {
  return [...decisions].sort(({ record: one }, { record: other }) =>
    one.time < other.time ? 1 : one.time > other.time ? -1 : 0,
  );
}
