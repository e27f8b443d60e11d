/** Manages the tables and budgets of the ledger from a program. Needs no enabled filter. */

import { waitFor } from '../base/deadline.ts';
import { formatProblem } from '../base/errors.ts';
import { createLogger, type Logger } from '../base/logger.ts';
import type { ConfigSources } from '../config/sources.ts';
import { type Clock, SYSTEM_CLOCK } from '../filter/services.ts';
import type { BudgetUsage } from '../ledger/budgets/budgets.ts';
import type { BudgetKey, NewBudget } from '../ledger/budgets/terms.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { type LedgerOptions, ledgerSection } from '../ledger/options.ts';
import type { BudgetWatch } from '../ledger/outbox/crossings.ts';
import { requireConfiguration, sectionOf } from './configuration.ts';
import { watchOf } from './configured-notifications.ts';
import { notificationsSection } from './notifications/options.ts';

/** Dependencies of a `BudgetLedger`. Each has a default. */
export interface BudgetLedgerServices {
  /** For warnings about `[ledger]`. Default: JSON lines on standard error. */
  readonly logger?: Logger;
  /** Default: the system clock. */
  readonly clock?: Clock;
}

export interface BudgetChangeAuthor {
  readonly who: string;
  /** Default: no reason is recorded. */
  readonly reason?: string | undefined;
}

/**
 * Sets and reads budgets, and upgrades the tables, without a chain of filters. Opens the database on first
 * use; safe for concurrent calls. Every call may throw `ConfigurationError` (the tables are missing or of
 * another version: call `upgrade`) and `LedgerUnavailableError` (the database does not answer within
 * `[ledger] timeout`).
 */
export class BudgetLedger {
  readonly #options: LedgerOptions;
  readonly #clock: Clock;
  readonly #watch: BudgetWatch | undefined;
  #opening: Promise<Ledger> | undefined;
  #isClosed = false;

  private constructor(options: LedgerOptions, clock: Clock, watch: BudgetWatch | undefined) {
    this.#options = options;
    this.#clock = clock;
    this.#watch = watch;
  }

  /**
   * Reads the sources of `UsageEnforcement.load`, for `[ledger]` and `[notifications]`. Throws
   * `ConfigurationError` with every mistake.
   */
  static async load(
    sources: ConfigSources = {},
    { logger = createLogger(), clock = SYSTEM_CLOCK }: BudgetLedgerServices = {},
  ): Promise<BudgetLedger> {
    const configuration = await requireConfiguration(sources, [ledgerSection, notificationsSection]);
    for (const problem of configuration.problems.filter(({ section }) => section === 'ledger')) {
      logger.warn(formatProblem(problem));
    }
    return new BudgetLedger(sectionOf(configuration, ledgerSection), clock, await watchOf(configuration));
  }

  /**
   * Creates the tables, or upgrades them. Returns the names of the applied migrations; empty = already up to
   * date. Creates the file of a SQLite ledger; its folder must exist. Stop other processes on the ledger
   * first, as for `ledger upgrade`.
   */
  async upgrade(): Promise<readonly string[]> {
    this.#refuseWhenClosed();
    const before = this.#opening;
    this.#opening = undefined;
    await (await before?.catch(() => undefined))?.close();
    const { upgradeLedger } = await import('../ledger/open.ts');
    return upgradeLedger(this.#options);
  }

  /**
   * Sets a budget. It replaces the budget of the same owner with the same start second, and takes over its
   * charged usage. Throws `InvalidRequestError` (`field` is the property), and `BudgetConflictError` if it
   * would overlap with another budget of the same owner.
   */
  async setBudget(budget: NewBudget, { who, reason }: BudgetChangeAuthor): Promise<BudgetUsage> {
    const ledger = await this.#open();
    const { setBudget, listBudgets } = await import('../ledger/budgets/budgets.ts');
    const { parseBudget } = await import('../ledger/budgets/terms.ts');
    const wanted = parseBudget(budget, 'unit-hours');
    const { id } = await setBudget(ledger, wanted, { who, reason: reason ?? null }, UNTIL_TIMEOUT);
    const budgets = await listBudgets(ledger, wanted.projectId, UNTIL_TIMEOUT);
    return budgets.find((one) => one.id === id) ?? { ...wanted, id, taken: 0n, left: wanted.amount };
  }

  /** Resolves to whether the budget existed. Usage charged to it stays charged. Throws `InvalidRequestError`. */
  async removeBudget(budget: BudgetKey, { who, reason }: BudgetChangeAuthor): Promise<boolean> {
    const ledger = await this.#open();
    const { removeBudget } = await import('../ledger/budgets/budgets.ts');
    const { parseBudgetKey } = await import('../ledger/budgets/terms.ts');
    const author = { who, reason: reason ?? null };
    return (await removeBudget(ledger, parseBudgetKey(budget), author, UNTIL_TIMEOUT)) !== undefined;
  }

  /**
   * The budgets of a project, with the remaining amounts, sorted by user and time. Includes expired budgets.
   * Default: all projects. Amounts are exact: `formatUnitHours` formats them for display.
   */
  async budgets(projectId?: string): Promise<readonly BudgetUsage[]> {
    const ledger = await this.#open();
    const { listBudgets } = await import('../ledger/budgets/budgets.ts');
    return listBudgets(ledger, projectId, UNTIL_TIMEOUT);
  }

  /** Closes the database. Later calls throw. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const ledger = await this.#opening?.catch(() => undefined);
    this.#opening = undefined;
    await ledger?.close();
  }

  #open(): Promise<Ledger> {
    this.#refuseWhenClosed();
    this.#opening ??= this.#openOnce().catch((thrown: unknown) => {
      // The next call retries.
      this.#opening = undefined;
      throw thrown;
    });
    return this.#opening;
  }

  async #openOnce(): Promise<Ledger> {
    const { openLedger } = await import('../ledger/open.ts');
    const parts = { clock: this.#clock, observer: undefined, watch: this.#watch };
    const { ledger, verify } = openLedger(this.#options, parts);
    try {
      await verify('write');
      return ledger;
    } catch (thrown) {
      await ledger.close();
      throw thrown;
    }
  }

  #refuseWhenClosed(): void {
    if (this.#isClosed) {
      throw new Error('the ledger is closed');
    }
  }
}

/** `[ledger] timeout` bounds each transaction. */
const UNTIL_TIMEOUT = waitFor(undefined);
