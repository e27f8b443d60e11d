/**
 * How long this process has known the rows of the ledger, by a monotonic clock. The clocks of replicas, their
 * database and Blazar may be wrong, or be set while a lease is being built. A row that this process has seen
 * before has existed at least since then.
 */
import type { LeaseRow } from '../storage/schema.ts';

type Known = Pick<LeaseRow, 'id' | 'revision'>;

export class RowAges {
  readonly #milliseconds: () => number;
  #rows = new Map<bigint, { readonly revision: bigint; readonly at: number }>();

  /** `milliseconds`: a monotonic clock. */
  constructor(milliseconds: () => number = () => performance.now()) {
    this.#milliseconds = milliseconds;
  }

  now(): number {
    return this.#milliseconds();
  }

  /** To be called with all open rows: other rows are dropped. */
  learn(rows: Iterable<Known>): void {
    const at = this.now();
    const next = new Map<bigint, { readonly revision: bigint; readonly at: number }>();
    for (const { id, revision } of rows) {
      const before = this.#rows.get(id);
      next.set(id, before?.revision === revision ? before : { revision, at });
    }
    this.#rows = next;
  }

  /** Minimum number of milliseconds before `now` that a row has been unchanged. 0 = it may be new. */
  age({ id, revision }: Known, now: number): number {
    const known = this.#rows.get(id);
    return known?.revision === revision ? Math.max(0, now - known.at) : 0;
  }
}
