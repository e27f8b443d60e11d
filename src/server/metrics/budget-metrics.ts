/** What is shown about budgets: how many are nearly taken, and what is left of each, up to a number. */
import { Gauge, type Registry } from 'prom-client';
import { parseUnitHours } from '../../filter/amount.ts';
import type { BudgetUse } from './budget-gauge.ts';

type Owner = 'project_id' | 'user_id';

const UNIT_HOUR = Number(parseUnitHours('1'));

export class BudgetMetrics {
  readonly #classes: Gauge<'taken'>;
  readonly #amount: Gauge<Owner>;
  readonly #taken: Gauge<Owner>;
  readonly #left: Gauge<Owner>;
  readonly #omitted: Gauge;
  #shown: BudgetUse | undefined;

  /** `prefix` begins the names. */
  constructor(registry: Registry, prefix: string) {
    const registers = [registry];
    const labelNames: Owner[] = ['project_id', 'user_id'];
    this.#classes = new Gauge({
      name: `${prefix}ledger_budgets`,
      help: 'Budgets in force, by the share that leases have taken. Counted at most once a minute.',
      labelNames: ['taken'],
      registers,
    });
    this.#amount = new Gauge({
      name: `${prefix}budget_amount_hours`,
      help: 'Unit-hours of each budget in force; of a user in the project, if user_id is not empty. Read at most once a minute.',
      labelNames,
      registers,
    });
    this.#taken = new Gauge({
      name: `${prefix}budget_taken_hours`,
      help: 'Unit-hours of it that leases have used or will use.',
      labelNames,
      registers,
    });
    this.#left = new Gauge({
      name: `${prefix}budget_left_hours`,
      help: 'Unit-hours of it that are left; below 0 if it was made smaller than what was taken.',
      labelNames,
      registers,
    });
    this.#omitted = new Gauge({
      name: `${prefix}budgets_omitted`,
      help: 'Budgets in force that the metrics leave out, because there are more than metrics_budgets: the ones with the smallest share taken.',
      registers,
    });
    this.#omitted.remove();
  }

  /** `undefined` = there is no ledger, or it does not answer. */
  set(use: BudgetUse | undefined): void {
    if (use !== undefined && use === this.#shown) {
      return;
    }
    this.#shown = use;
    this.#classes.reset();
    for (const gauge of [this.#amount, this.#taken, this.#left]) {
      gauge.reset();
    }
    this.#omitted.remove();
    if (use === undefined) {
      return;
    }
    for (const [taken, count] of use.classes) {
      this.#classes.set({ taken }, count);
    }
    for (const { projectId: project_id, userId, amount, taken } of use.fullest) {
      const owner = { project_id, user_id: userId ?? '' };
      this.#amount.set(owner, Number(amount) / UNIT_HOUR);
      this.#taken.set(owner, Number(taken) / UNIT_HOUR);
      this.#left.set(owner, Number(amount - taken) / UNIT_HOUR);
    }
    this.#omitted.set(use.omitted);
  }
}
