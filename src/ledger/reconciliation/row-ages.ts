/**
 * For how long one process has known what the ledger has, by a clock that nobody sets. Those of replicas, of their database and of Blazar
 * may be wrong, or be set while a lease is being built; what a process has seen itself, some time ago, was there some time ago.
 */
import type { LeaseRow } from '../storage/schema.ts';

type Known = Pick<LeaseRow, 'id' | 'revision'>;

export class RowAges {
  readonly #milliseconds: () => number;
  #rows = new Map<bigint, { readonly revision: bigint; readonly at: number }>();

  /** `milliseconds`: a clock that only goes forward. */
  constructor(milliseconds: () => number = () => performance.now()) {
    this.#milliseconds = milliseconds;
  }

  now(): number {
    return this.#milliseconds();
  }

  /** Call it when all open rows were read: what is not among them is forgotten. */
  learn(rows: Iterable<Known>): void {
    const at = this.now();
    const next = new Map<bigint, { readonly revision: bigint; readonly at: number }>();
    for (const { id, revision } of rows) {
      const before = this.#rows.get(id);
      next.set(id, before?.revision === revision ? before : { revision, at });
    }
    this.#rows = next;
  }

  /** For how many milliseconds before `now` a row has been as it is, at least. 0 = it may be new. */
  age({ id, revision }: Known, now: number): number {
    const known = this.#rows.get(id);
    return known?.revision === revision ? Math.max(0, now - known.at) : 0;
  }
}
