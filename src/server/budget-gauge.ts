/** Counts budgets by how much of them is taken, for whoever reads the metrics: at most once a minute, and never for long. */
import { inTime, withinDeadline } from '../deadline.ts';
import type { BudgetClass } from '../ledger/budget-use.ts';
import type { ChainLedger } from '../ledger/service.ts';

/** In milliseconds. */
const KEPT = 60_000;
/** Reading the metrics must not wait longer for the ledger, in seconds. */
const PATIENCE = 2;

type Counts = ReadonlyMap<BudgetClass, number>;

export class BudgetGauge {
  readonly #now: () => number;
  #ledger: ChainLedger | undefined;
  #readAt = 0;
  #counts: Promise<Counts | undefined> | undefined;

  /** `now`: in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** `undefined` when there is no ledger, or it does not answer. */
  read(ledger: ChainLedger | undefined): Promise<Counts | undefined> {
    if (this.#counts === undefined || ledger !== this.#ledger || this.#now() - this.#readAt >= KEPT) {
      this.#ledger = ledger;
      this.#readAt = this.#now();
      this.#counts = ledger === undefined ? Promise.resolve(undefined) : count(ledger);
    }
    return this.#counts;
  }
}

async function count(ledger: ChainLedger): Promise<Counts | undefined> {
  const { budgetUse } = await import('../ledger/budget-use.ts');
  return withinDeadline(PATIENCE, async (deadline) => {
    try {
      const counts = ledger.read((opened) => budgetUse(opened, deadline));
      await inTime(counts, deadline);
      return await counts;
    } catch {
      return undefined;
    }
  });
}
