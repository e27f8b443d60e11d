/** A real Blazar whose leases are charged to budgets on a ledger, and what the ledger has of them. */
import { UsageEnforcement } from '../../src/index.ts';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import type { LeaseRow } from '../../src/ledger/storage/schema.ts';
import { giveBudget, ledgerAt, NO_WAIT } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { startedService } from '../support/started-service.ts';
import { RealBlazar } from './blazar.ts';

export const PROJECT = 'climate';
/** Of the project, in units and hours. */
export const BUDGET = 1200;
export const MOST_LEASES = 16;
export const HOUR = 3600;

export class ChargedBlazar {
  /** `undefined` = it does not start. */
  readonly blazar: RealBlazar | undefined;
  readonly ledger: Ledger;
  readonly enforcement: UsageEnforcement;
  readonly #service: Awaited<ReturnType<typeof startedService>>;

  private constructor(
    blazar: RealBlazar | undefined,
    ledger: Ledger,
    enforcement: UsageEnforcement,
    service: Awaited<ReturnType<typeof startedService>>,
  ) {
    this.blazar = blazar;
    this.ledger = ledger;
    this.enforcement = enforcement;
    this.#service = service;
  }

  static async start(program: string, connection: string): Promise<ChargedBlazar> {
    const values = {
      ledger: { connection },
      enforcement: {
        enabled_filters: ['UsageBudgetFilter', 'MaxLeasesFilter'],
        usage_budget_rates: { 'physical:host': 1, 'virtual:instance': 0.3 },
        max_leases_per_project: MOST_LEASES,
      },
    };
    const service = await startedService({ ...values, service: { port: 0 } });
    const sources = { environment: {}, configFiles: [], values };
    const enforcement = await UsageEnforcement.load(sources, { logger: recordingLogger() });
    const ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
    await giveBudget(ledger, { projectId: PROJECT, amount: String(BUDGET), ...VALID });
    const blazar = await RealBlazar.startOrSkip(program, service.url, 12);
    return new ChargedBlazar(blazar, ledger, enforcement, service);
  }

  /** Of one user in the project. */
  async giveBudgetTo(userId: string, amount: number): Promise<void> {
    await giveBudget(this.ledger, { projectId: PROJECT, userId, amount: String(amount), ...VALID });
  }

  openRows(): Promise<LeaseRow[]> {
    const query = this.ledger.database.queries.selectFrom('leases').selectAll().where('state', '=', 'open');
    return this.ledger.read('read', () => rows(query.compile()), NO_WAIT);
  }

  /** Of the budget of the project, or of a user, in tenths of a unit, times seconds. */
  async taken(userId: string | null = null): Promise<number> {
    const budgets = await listBudgets(this.ledger, PROJECT, NO_WAIT);
    return Number(budgets.find((one) => one.userId === userId)?.taken ?? 0n) / 100_000;
  }

  async stop(): Promise<void> {
    await this.blazar?.stop();
    await this.enforcement.close();
    await this.ledger.close();
    await this.#service.close();
  }
}

const VALID = { from: '2026-01-01', until: '2040-01-01' };
