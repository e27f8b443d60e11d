/** A real Blazar that asks our service, and the ledger of the service, which follows it. */
import { budgetCommand } from '../../src/cli/budget.ts';
import { budgetAccount } from '../../src/filter/claim.ts';
import { UsageEnforcement } from '../../src/index.ts';
import { type BudgetUsage, listBudgets } from '../../src/ledger/budgets/budgets.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { Reconciled } from '../../src/ledger/reconciliation/change-lease.ts';
import type { RowAges } from '../../src/ledger/reconciliation/reconcile.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import type { LeaseRow } from '../../src/ledger/storage/schema.ts';
import { type Followed, follow } from '../../src/server/followers/follow-blazar.ts';
import { runInProcess } from '../support/command-in-process.ts';
import { confFile, temporaryFile, valuesOnly } from '../support/files.ts';
import { giveBudget, ledgerAt, NO_WAIT } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { startedService } from '../support/started-service.ts';
import { RealBlazar } from './blazar.ts';
import { headerKeystone } from './header-keystone.ts';

export const PROJECT = 'climate';
export const MOST_LEASES = 16;
const HOSTS = 12;
/** Of Blazar's own filter, which runs before or after ours, as Python likes. */
const LONGEST = 36 * 3600;

export interface CaseBudget {
  readonly user: string | null;
  readonly from: string;
  readonly until: string;
  /** In units and hours. */
  readonly amount: number;
}

export class ChargedBlazar {
  /** `undefined` = it does not start. */
  readonly blazar: RealBlazar | undefined;
  readonly ledger: Ledger;
  readonly #enforcement: UsageEnforcement;
  readonly #service: Awaited<ReturnType<typeof startedService>>;
  readonly #conf: string;

  private constructor(
    blazar: RealBlazar | undefined,
    ledger: Ledger,
    enforcement: UsageEnforcement,
    service: Awaited<ReturnType<typeof startedService>>,
    conf: string,
  ) {
    this.blazar = blazar;
    this.ledger = ledger;
    this.#enforcement = enforcement;
    this.#service = service;
    this.#conf = conf;
  }

  static async start(
    program: string,
    connection: string,
    budgets: readonly CaseBudget[],
  ): Promise<ChargedBlazar> {
    const rates = { 'physical:host': 1, 'virtual:instance': 0.3, 'virtual:floatingip': 0.1 };
    const values = {
      ledger: { connection },
      enforcement: {
        enabled_filters: ['UsageBudgetFilter', 'MaxLeasesFilter'],
        usage_budget_rates: rates,
        max_leases_per_project: MOST_LEASES,
      },
    };
    const service = await startedService({ ...values, service: { port: 0 } });
    const sources = valuesOnly(values);
    const enforcement = await UsageEnforcement.load(sources, { logger: recordingLogger() });
    const ledger = await ledgerAt(connection, { now: () => new Date().toISOString() });
    for (const { user, amount, ...valid } of budgets) {
      await giveBudget(ledger, { projectId: PROJECT, userId: user, amount: String(amount), ...valid });
    }
    const blazar = await RealBlazar.startOrSkip(program, service.url, HOSTS, [
      '--floatingips',
      '16',
      '--filters',
      'MaxLeaseDurationFilter,ExternalServiceFilter',
      '--option',
      `max_lease_duration=${LONGEST}`,
    ]);
    const conf = confFile(
      `[ledger]\nconnection = ${connection}\n[enforcement]\nenabled_filters = UsageBudgetFilter\n`,
    );
    return new ChargedBlazar(blazar, ledger, enforcement, service, conf);
  }

  /** As an operator does it, with `budget import`. */
  async import(budgets: readonly CaseBudget[]): Promise<void> {
    const lines = budgets.map(({ user, from, until, amount }) =>
      [PROJECT, user ?? '', from, until, amount].join(),
    );
    const file = temporaryFile(
      'budgets.csv',
      `project_id,user_id,valid_from,valid_until,amount\n${lines.join('\n')}\n`,
    );
    const { code, stderr } = await runInProcess(budgetCommand(), [
      'import',
      file,
      '--config-file',
      this.#conf,
    ]);
    if (code !== 0) {
      throw new Error(stderr);
    }
  }

  /** `known`: of a process that makes one round after another. */
  async round(
    blazar: RealBlazar,
    grace: number,
    known?: RowAges,
  ): Promise<{ followed: Followed; done: Reconciled[] }> {
    const keystone = headerKeystone(blazar.url);
    const done: Reconciled[] = [];
    const followed = await follow({
      ledger: this.ledger,
      keystone,
      endpoint: undefined,
      region: undefined,
      claimants: this.#enforcement.claimants,
      exemptProjects: [],
      grace,
      isDryRun: false,
      known,
      holder: 'a test',
      every: 0,
      who: 'follower',
      reason: null,
      signal: undefined,
      report: (one) => done.push(one),
    });
    await keystone.close();
    return { followed, done };
  }

  /** Those that have not ended by then. */
  openRows(now: Date): Promise<LeaseRow[]> {
    const query = this.ledger.database.queries
      .selectFrom('leases')
      .selectAll()
      .where('state', '=', 'open')
      .where('ends_at', '>', BigInt(now.getTime()) * 1000n)
      .orderBy('lease_id');
    return this.ledger.read('read', () => rows(query.compile()), NO_WAIT);
  }

  budgets(): Promise<BudgetUsage[]> {
    return listBudgets(this.ledger, PROJECT, NO_WAIT);
  }

  /** Row → what the budgets of the project are charged for it. */
  async chargesByRow(): Promise<Map<bigint, number>> {
    const accounts = (await this.budgets()).filter(({ userId }) => userId === null).map(budgetAccount);
    const query = this.ledger.database.queries
      .selectFrom('entries')
      .select(['lease', 'delta'])
      .where('account', 'in', accounts);
    const charges = new Map<bigint, number>();
    for (const { lease, delta } of await this.ledger.read('read', () => rows(query.compile()), NO_WAIT)) {
      charges.set(lease, (charges.get(lease) ?? 0) + tenths(delta));
    }
    return charges;
  }

  async stop(): Promise<void> {
    await this.blazar?.stop();
    await this.#enforcement.close();
    await this.ledger.close();
    await this.#service.close();
  }
}

/** Of a unit, times seconds. */
export function tenths(amount: bigint): number {
  return Number(amount) / 100_000;
}
