/** Projects in a ledger that the tests of a file share, and what befalls leases there, in the terms of a chain of filters. */
import { expect, onTestFinished } from 'vitest';
import { MaxLeasesFilter } from '../../filters/max-leases-filter.ts';
import { UsageBudgetFilter } from '../../filters/usage-budget-filter.ts';
import { RequestCall } from '../../src/enforcement/request-call.ts';
import { createSharedServices } from '../../src/enforcement/services.ts';
import { type Context, formatUnitHours, type Lease } from '../../src/index.ts';
import { listBudgets } from '../../src/ledger/budgets.ts';
import { rows } from '../../src/ledger/database.ts';
import { claimantOf } from '../../src/ledger/lease-request.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { Author } from '../../src/ledger/posting.ts';
import type { Claimant } from '../../src/ledger/prospect.ts';
import type { Tables } from '../../src/ledger/schema.ts';
import { ChainLedger } from '../../src/ledger/service.ts';
import type { Recording, Undo } from '../../src/ledger/transactions.ts';
import {
  type BudgetText,
  type DIALECTS,
  giveBudget,
  ledgerAt,
  NO_WAIT,
  newLedgers,
} from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';

const TABLES = ['projects', 'leases', 'accounts', 'entries', 'budgets', 'budget_changes'] as const;

export interface LeaseText {
  readonly id?: string;
  readonly name?: string;
  /** Default: 1. */
  readonly hosts?: number;
  readonly from?: string;
  readonly until?: string;
}

/** Default: one host for a day that is to come. */
export function leaseOf({ id, name = 'run', hosts = 1, from, until }: LeaseText = {}): Lease {
  return {
    ...(id === undefined ? {} : { id }),
    name,
    start_date: from ?? '2026-12-01 00:00',
    end_date: until ?? '2026-12-02 00:00',
    reservations: [{ id: 'r1', resource_type: 'physical:host', min: 1, max: hosts }],
  };
}

/** How a lease is asked for. */
export interface Creating {
  /** The `Idempotency-Key` of the request. */
  readonly key?: string;
  /** Whether it may be one that was recorded without its id. */
  readonly adopts?: boolean;
  readonly region?: string | null;
}

export interface GroundSetup {
  /** How many leases the project may have. Default: any number. */
  readonly most?: number;
  readonly mostPerUser?: number;
  /** In unit-hours, of the project, for two years; `none` = there is none yet; `undefined` = nobody needs one. */
  readonly budget?: string;
  readonly audit?: boolean;
  readonly projectId?: string;
}

/** What the tests of a contract are given. */
export type Grounds = (setup?: GroundSetup) => Promise<Ground>;

/** Call it at the top of a file. Each call of the result is a project of its own. */
export function newGrounds(): (dialect: (typeof DIALECTS)[number], setup?: GroundSetup) => Promise<Ground> {
  const ledgers = newLedgers();
  const connections = new Map<string, Promise<string>>();
  let projects = 0;
  return async (dialect, setup = {}) => {
    const connection = connections.get(dialect) ?? ledgers(dialect);
    connections.set(dialect, connection);
    projects += 1;
    const project = `project-${projects}`;
    const ground = new Ground(await connection, setup, project);
    onTestFinished(() => ground.close());
    await ground.open(setup);
    return ground;
  };
}

export class Ground {
  readonly project: string;
  readonly connection: string;
  readonly chain: ChainLedger;
  readonly claimants: readonly Claimant[];
  readonly budgetFilter: UsageBudgetFilter;
  readonly countFilter: MaxLeasesFilter;
  /** What time it is. */
  now = '2026-11-21T09:00:30Z';
  #ledger: Ledger | undefined;
  #closed: Promise<unknown> | undefined;

  constructor(connection: string, setup: GroundSetup, project: string) {
    this.connection = connection;
    // As databases keep it, which have no half of an emoji.
    this.project = Buffer.from(setup.projectId ?? project).toString();
    const clock = { now: () => new Date(this.now) };
    const logger = recordingLogger();
    const options = { connection, commit: 'check', timeout: 10, pool_size: 4 } as const;
    this.chain = new ChainLedger(options, { clock, logger, observer: undefined });
    const services = { ...createSharedServices({ clock, logger }), ledger: this.chain };
    const { most = -1, mostPerUser = -1, budget, audit = false } = setup;
    this.countFilter = new MaxLeasesFilter(
      MaxLeasesFilter.options.parse({
        max_leases_per_project: most,
        max_leases_per_user: mostPerUser,
      }) as never,
      services,
    );
    this.budgetFilter = new UsageBudgetFilter(
      UsageBudgetFilter.options.parse({ usage_budget_required: budget !== undefined }) as never,
      services,
    );
    this.claimants = [
      claimantOf(this.countFilter, 'MaxLeasesFilter', audit),
      claimantOf(this.budgetFilter, 'UsageBudgetFilter', audit),
    ];
  }

  get ledger(): Ledger {
    if (this.#ledger === undefined) {
      throw new Error('expected an open ledger');
    }
    return this.#ledger;
  }

  async open({ budget }: GroundSetup): Promise<void> {
    await this.chain.open();
    this.#ledger = await ledgerAt(this.connection, { now: () => this.now });
    if (budget !== undefined && budget !== 'none') {
      await this.give({ amount: budget });
    }
  }

  /** Also twice; at the latest when the test is over. */
  async close(): Promise<void> {
    this.#closed ??= Promise.all([this.#ledger?.close(), this.chain.close()]);
    await this.#closed;
  }

  give(budget: BudgetText): Promise<void> {
    return giveBudget(this.ledger, { projectId: this.project, ...budget });
  }

  context(userId = 'alice'): Context {
    return { user_id: userId, project_id: this.project };
  }

  /** With an id that no lease of another project has. */
  named(lease: Lease): Lease {
    return typeof lease.id === 'string' ? { ...lease, id: this.idOf(lease.id) } : lease;
  }

  idOf(id: string): string {
    return `${this.project}/${id}`;
  }

  create(lease: Lease, userId?: string, how: Creating = {}): Promise<Recording> {
    const { key, adopts, region } = how;
    const context = { ...this.context(userId), ...(region === undefined ? {} : { region_name: region }) };
    const named = this.named(lease);
    const { repetition } = new RequestCall(NO_WAIT, key, [context, named]);
    return this.chain.commit(
      { context, lease: named, repetition, adopts },
      this.claimants,
      by('create'),
      NO_WAIT,
    );
  }

  /** Records a lease that was checked before it had an id. */
  adopt(lease: Lease): Promise<Recording> {
    return this.create(lease, undefined, { adopts: true });
  }

  update(currentLease: Lease, lease: Lease, userId?: string): Promise<Recording> {
    const context = this.context(userId);
    const request = { context, currentLease: this.named(currentLease), lease: this.named(lease) };
    return this.chain.commit(request, this.claimants, by('update'), NO_WAIT);
  }

  end(lease: Lease, userId?: string, region?: string | null): Promise<void> {
    const context = { ...this.context(userId), ...(region === undefined ? {} : { region_name: region }) };
    return this.chain.end({ context, lease: this.named(lease) }, {});
  }

  takeBack(undo: Undo | undefined): Promise<boolean> {
    if (undo === undefined) {
      throw new Error('expected a recording that can be taken back');
    }
    return this.chain.takeBack(undo, by('undo'), NO_WAIT);
  }

  /** Of its budgets, in their order, in unit-hours. */
  async taken(): Promise<string[]> {
    const budgets = await listBudgets(this.ledger, this.project, NO_WAIT);
    return budgets.map(({ taken }) => formatUnitHours(taken));
  }

  /** How many leases it has now. */
  count(): Promise<bigint> {
    return this.balance('max_leases/project');
  }

  async balance(account: string): Promise<bigint> {
    const accounts = await this.rows('accounts');
    return accounts.find(({ name }) => name === account)?.balance ?? 0n;
  }

  /** Those of the project. */
  async rows<Name extends keyof Tables>(table: Name): Promise<Row<Name>[]> {
    const all = await this.table(table);
    return all.filter((row) => 'project_id' in row && row.project_id === this.project);
  }

  async table<Name extends keyof Tables>(table: Name): Promise<Row<Name>[]> {
    const query = this.ledger.database.queries.selectFrom(TABLES.find((name) => name === table) ?? 'leases');
    const found = await this.ledger.read('read', () => rows(query.selectAll().compile()), NO_WAIT);
    return found as unknown as Row<Name>[];
  }

  /** All that the ledger holds, of every project. */
  async everything(): Promise<unknown> {
    return Promise.all(TABLES.map(async (name) => [name, await this.table(name)]));
  }

  /** Every balance is the sum of its entries, and no more is taken of a budget than there is. */
  async verify({ overdrawn = false } = {}): Promise<void> {
    const sums = new Map<string, bigint>();
    for (const { account, delta } of await this.rows('entries')) {
      sums.set(account, (sums.get(account) ?? 0n) + delta);
    }
    const balances = new Map((await this.rows('accounts')).map(({ name, balance }) => [name, balance]));
    expect(balances).toEqual(sums);
    if (!overdrawn) {
      for (const { taken, amount } of await listBudgets(this.ledger, this.project, NO_WAIT)) {
        expect(taken).toBeGreaterThanOrEqual(0n);
        expect(taken).toBeLessThanOrEqual(amount);
      }
    }
  }
}

type Row<Name extends keyof Tables> = {
  [Column in keyof Tables[Name]]: Tables[Name][Column] extends { readonly __select__: infer Value }
    ? Value
    : Tables[Name][Column];
};

export function by(operation: Author['operation']): Author {
  return { operation, who: 'alice', requestId: 'req-1', reason: null };
}
