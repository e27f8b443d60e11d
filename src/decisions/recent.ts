/** The latest decisions, for the console. */

import type { DecisionRecord } from './record.ts';
import type { RequestedLease } from './requested-lease.ts';

/** How many are kept. */
const RECENT = 50;

interface Kept {
  readonly record: DecisionRecord;
  /** `undefined` = allowed, or not a lease. */
  readonly asked: RequestedLease | undefined;
}

export class RecentDecisions {
  readonly #kept: Kept[] = [];
  readonly #heardBy = new Set<(record: DecisionRecord) => void>();
  #next = 0;

  add(record: DecisionRecord, asked?: RequestedLease): void {
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
  refused(): (Kept & { readonly asked: RequestedLease })[] {
    return this.#latest().flatMap(({ record, asked }) => (asked === undefined ? [] : { record, asked }));
  }

  #latest(): Kept[] {
    return [...this.#kept.slice(this.#next), ...this.#kept.slice(0, this.#next)].reverse();
  }
}
