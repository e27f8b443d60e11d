/**
 * Metrics of budgets: publicly, the number of nearly exhausted ones; for clients with a token, the remainder
 * of single budgets, up to a limit.
 */
import type { Gauge } from 'prom-client';
import { timedYield } from '../../base/yield-to-event-loop.ts';
import { unitHours } from '../../filter/claim.ts';
import type { BudgetClass, UsedBudget } from '../../ledger/budgets/view.ts';
import type { ChainLedger } from '../../ledger/service.ts';
import { Cached, readLedger } from './cached.ts';
import type { Instruments } from './instruments.ts';

const OF_EACH = [
  {
    name: 'budget_amount_hours',
    help: 'Unit-hours of each budget in force; of a user in the project, if user_id is not empty. Read at most once a minute.',
    of: ({ amount }: UsedBudget) => unitHours(amount),
  },
  {
    name: 'budget_taken_hours',
    help: 'Unit-hours of it that leases have used or will use.',
    of: ({ taken }: UsedBudget) => unitHours(taken),
  },
  {
    name: 'budget_left_hours',
    help: 'Unit-hours of it that are left; below 0 if it was made smaller than what was taken.',
    of: ({ amount, taken }: UsedBudget) => unitHours(amount - taken),
  },
  {
    name: 'budget_valid_from_timestamp_seconds',
    help: 'When its validity began, in seconds of the epoch.',
    of: ({ validFrom }: UsedBudget) => Number(validFrom),
  },
  {
    name: 'budget_valid_until_timestamp_seconds',
    help: 'When its validity ends, in seconds of the epoch.',
    of: ({ validUntil }: UsedBudget) => Number(validUntil),
  },
] as const;
const OMITTED = {
  name: 'budgets_omitted',
  help: 'Budgets in force that the metrics leave out, because there are more than metrics_budgets: the ones with the smallest share taken.',
} as const;

export class BudgetMetrics {
  readonly #prefix: string;
  readonly #classes: Gauge<'taken'>;
  #shown: BudgetUse | undefined;
  #ofEach: Promise<Buffer> | undefined;

  /** `make`: for public metrics. */
  constructor(make: Instruments) {
    this.#prefix = make.prefix;
    this.#classes = make.gauge(
      'ledger_budgets',
      'Budgets in force, by the share that leases have taken. Counted at most once a minute.',
      ['taken'],
    );
  }

  /** `undefined` = there is no ledger, or it does not answer. */
  set(use: BudgetUse | undefined): void {
    if (use === this.#shown) {
      return;
    }
    this.#shown = use;
    this.#ofEach = undefined;
    this.#classes.reset();
    for (const [taken, count] of use?.classes ?? []) {
      this.#classes.set({ taken }, count);
    }
  }

  /** The Prometheus text of single budgets as of the last `set`. It contains ids of projects and users. */
  ofEach(): Promise<Buffer> {
    this.#ofEach ??= written(this.#prefix, this.#shown);
    return this.#ofEach;
  }
}

/** Not by prom-client, which blocks the process while it writes: 10,000 budgets have 50,000 lines. */
async function written(prefix: string, use: BudgetUse | undefined): Promise<Buffer> {
  const yieldIfDue = timedYield();
  const families = OF_EACH.map(({ name, help, of }) => ({ name, of, text: head(prefix + name, help) }));
  for (const budget of use?.fullest ?? []) {
    const { projectId, userId } = budget;
    const owner = `{project_id="${escaped(projectId)}",user_id="${escaped(userId ?? '')}"}`;
    for (const family of families) {
      family.text += `${prefix}${family.name}${owner} ${family.of(budget)}\n`;
    }
    await yieldIfDue();
  }
  const omitted = use === undefined ? '' : `${prefix}${OMITTED.name} ${use.omitted}\n`;
  const texts = [...families.map(({ text }) => text), head(prefix + OMITTED.name, OMITTED.help) + omitted];
  return Buffer.from(texts.map((text) => `\n${text}`).join(''));
}

function head(name: string, help: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n`;
}

/** A label value in the text format of Prometheus. */
function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

/** In milliseconds. */
const KEPT = 60_000;

export interface BudgetUse {
  readonly classes: ReadonlyMap<BudgetClass, number>;
  /** The budgets with the largest share taken. */
  readonly fullest: readonly UsedBudget[];
  /** Number of further budgets in force. */
  readonly omitted: number;
}

/** Caches a reading of a ledger for a minute. `most`: maximum number of single budgets. */
export function createBudgetGauge(now?: () => number) {
  const read = (ledger: ChainLedger | undefined, most: number): Promise<BudgetUse | undefined> =>
    readLedger(ledger, async (opened, deadline) => {
      const { budgetUse, mostTakenBudgets } = await import('../../ledger/budgets/view.ts');
      const classes = await budgetUse(opened, deadline);
      const fullest = most === 0 ? [] : await mostTakenBudgets(opened, most, deadline);
      const inForce = [...classes.values()].reduce((sum, count) => sum + count, 0);
      return { classes, fullest, omitted: Math.max(0, inForce - fullest.length) };
    });
  return new Cached(KEPT, read, now);
}
