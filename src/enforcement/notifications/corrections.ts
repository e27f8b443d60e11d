/** What a comparison with Blazar has changed, counted while it goes on: a round may change a hundred thousand leases. */
import type { Reconciled } from '../../ledger/reconciliation/change-lease.ts';

/** What a change does to budgets. A lease that has only got its id is none. */
const CHANGES = ['released', 'recorded', 'corrected'] as const;
export type Change = (typeof CHANGES)[number];

/** Of more leases only these are listed. */
const MOST_LISTED = 50;

export class Corrections {
  readonly #counts = new Map<Change, number>(CHANGES.map((one) => [one, 0]));
  readonly #listed: Reconciled[] = [];
  #total = 0;

  add(one: Reconciled): void {
    const change = CHANGES.find((outcome) => outcome === one.outcome);
    if (change === undefined) {
      return;
    }
    this.#total += 1;
    this.#counts.set(change, (this.#counts.get(change) ?? 0) + 1);
    if (this.#listed.length < MOST_LISTED) {
      this.#listed.push(one);
    }
  }

  get isEmpty(): boolean {
    return this.#total === 0;
  }

  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }

  /** The first of them. */
  get listed(): readonly Reconciled[] {
    return this.#listed;
  }

  get leftOut(): number {
    return this.#total - this.#listed.length;
  }
}
