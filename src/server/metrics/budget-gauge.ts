/** Reads what is taken of budgets, for whoever reads the metrics: at most once a minute, and never for long. */
import { inTime, withinDeadline } from '../../base/deadline.ts';
import type { BudgetClass, UsedBudget } from '../../ledger/budgets/use.ts';
import type { ChainLedger } from '../../ledger/service.ts';

/** In milliseconds. */
const KEPT = 60_000;
/** Reading the metrics must not wait longer for the ledger, in seconds. */
const PATIENCE = 2;

export interface BudgetUse {
  readonly classes: ReadonlyMap<BudgetClass, number>;
  /** Those of which the largest share is taken. */
  readonly fullest: readonly UsedBudget[];
  /** How many more are in force. */
  readonly omitted: number;
}

export class BudgetGauge {
  readonly #now: () => number;
  #ledger: ChainLedger | undefined;
  #most = 0;
  #readAt = 0;
  #use: Promise<BudgetUse | undefined> | undefined;

  /** `now`: in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** `undefined` when there is no ledger, or it does not answer. `most`: how many budgets are shown one by one. */
  read(ledger: ChainLedger | undefined, most: number): Promise<BudgetUse | undefined> {
    const isOld = this.#now() - this.#readAt >= KEPT;
    if (this.#use === undefined || ledger !== this.#ledger || most !== this.#most || isOld) {
      this.#most = most;
      this.#ledger = ledger;
      this.#readAt = this.#now();
      this.#use = ledger === undefined ? Promise.resolve(undefined) : use(ledger, most);
    }
    return this.#use;
  }
}

async function use(ledger: ChainLedger, most: number): Promise<BudgetUse | undefined> {
  const { budgetUse, fullestBudgets } = await import('../../ledger/budgets/use.ts');
  return withinDeadline(PATIENCE, async (deadline) => {
    try {
      const read = ledger.read(async (opened) => {
        const classes = await budgetUse(opened, deadline);
        const fullest = most === 0 ? [] : await fullestBudgets(opened, most, deadline);
        const inForce = [...classes.values()].reduce((sum, count) => sum + count, 0);
        return { classes, fullest, omitted: Math.max(0, inForce - fullest.length) };
      });
      return await inTime(read, deadline);
    } catch {
      return undefined;
    }
  });
}
