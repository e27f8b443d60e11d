/** Projects in a ledger that the tests of a file share, and what befalls leases there, in the terms of a chain of filters. */

import { type Compilable, type CompiledQuery, sql } from 'kysely';
import { afterAll, expect, onTestFinished } from 'vitest';
import { MaxLeasesFilter } from '../../filters/max-leases-filter.ts';
import { UsageBudgetFilter } from '../../filters/usage-budget-filter.ts';
import { RequestCall } from '../../src/enforcement/chain/hook.ts';
import { NO_KEYSTONE } from '../../src/enforcement/keystone.ts';
import { createSharedServices } from '../../src/enforcement/services.ts';
import { type Context, formatUnitHours, type Lease } from '../../src/index.ts';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import { claimantOf } from '../../src/ledger/lease-request.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { Claimant } from '../../src/ledger/ledger-request.ts';
import { ChainOutbox } from '../../src/ledger/outbox/chain-outbox.ts';
import { ChainLedger } from '../../src/ledger/service.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import type { Tables } from '../../src/ledger/storage/schema.ts';
import type { Recording, Undo } from '../../src/ledger/transactions/lease-transactions.ts';
import {
  type BudgetText,
  type DIALECTS,
  giveBudget,
  ledgerAt,
  NO_WAIT,
  newLedgers,
} from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { by } from './recorded-leases.ts';

/** By the first two columns: they identify a row of each table, and PostgreSQL returns rows in any order. */
const IN_ORDER = sql`1, 2`;

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

export interface FixtureSetup {
  /** How many leases the project may have. Default: any number. */
  readonly most?: number;
  readonly mostPerUser?: number;
  /** In unit-hours, of the project, for two years; `none` = one is required and there is none; `undefined` = none is required. */
  readonly budget?: string;
  readonly audit?: boolean;
  readonly projectId?: string;
  /** More may be taken of a budget than there is. */
  readonly mayOverdraw?: boolean;
  /** Open the ledger once more for this project alone, as another process would. */
  readonly isApart?: boolean;
}

/** What the tests of a contract are given. */
export type LedgerFixtures = (setup?: FixtureSetup) => Promise<LedgerFixture>;

/**
 * Call it at the top of a file. Each call of the result is a project of its own, in the one ledger that the file has on each
 * database. `isShared`: projects share the open ledger, and its clock, too, which saves connecting for each test.
 */
export function newFixtures(
  isShared = false,
): (dialect: (typeof DIALECTS)[number], setup?: FixtureSetup) => Promise<LedgerFixture> {
  const ledgers = newLedgers();
  const connections = new Map<string, Promise<string>>();
  const shared = new Map<string, Promise<OpenLedger>>();
  let projects = 0;
  afterAll(async () => {
    for (const opened of shared.values()) {
      await (await opened).close();
    }
  });
  return async (dialect, setup = {}) => {
    const connection = connections.get(dialect) ?? ledgers(dialect);
    connections.set(dialect, connection);
    projects += 1;
    const project = `project-${projects}`;
    const isApart = !isShared || setup.isApart === true;
    const opening = (!isApart && shared.get(dialect)) || OpenLedger.open(await connection);
    if (!isApart) {
      shared.set(dialect, opening);
    }
    const opened = await opening;
    opened.now = NOW;
    const fixture = new LedgerFixture(opened, setup, project);
    if (isApart) {
      onTestFinished(() => fixture.close());
    }
    if (setup.budget !== undefined && setup.budget !== 'none') {
      await fixture.give({ amount: setup.budget });
    }
    return fixture;
  };
}

const NOW = '2026-11-21T09:00:30Z';

/** A ledger as a chain of filters has it, and as an operator looks into it. */
class OpenLedger {
  readonly connection: string;
  readonly chain: ChainLedger;
  readonly clock = { now: () => new Date(this.now) };
  readonly logger = recordingLogger();
  now = NOW;
  #ledger: Ledger | undefined;
  #closed: Promise<unknown> | undefined;

  private constructor(connection: string) {
    this.connection = connection;
    const options = { connection, commit: 'check', timeout: 10, pool_size: 4 } as const;
    this.chain = new ChainLedger(options, { clock: this.clock, logger: this.logger, observer: undefined });
  }

  static async open(connection: string): Promise<OpenLedger> {
    const opened = new OpenLedger(connection);
    await opened.chain.open();
    opened.#ledger = await ledgerAt(connection, { now: () => opened.now });
    return opened;
  }

  get ledger(): Ledger {
    if (this.#ledger === undefined) {
      throw new Error('expected an open ledger');
    }
    return this.#ledger;
  }

  async close(): Promise<void> {
    this.#closed ??= Promise.all([this.#ledger?.close(), this.chain.close()]);
    await this.#closed;
  }
}

export class LedgerFixture {
  readonly project: string;
  readonly connection: string;
  readonly chain: ChainLedger;
  readonly ledger: Ledger;
  readonly outbox: ChainOutbox;
  readonly claimants: readonly Claimant[];
  readonly budgetFilter: UsageBudgetFilter;
  readonly countFilter: MaxLeasesFilter;
  readonly #opened: OpenLedger;
  readonly #mayOverdraw: boolean;

  constructor(opened: OpenLedger, setup: FixtureSetup, project: string) {
    this.#opened = opened;
    this.#mayOverdraw = setup.mayOverdraw === true;
    const { connection, chain, ledger, clock, logger } = opened;
    this.connection = connection;
    this.chain = chain;
    this.ledger = ledger;
    // As databases keep it, which have no half of an emoji.
    this.project = Buffer.from(setup.projectId ?? project).toString();
    this.outbox = new ChainOutbox({ ledger: chain, logger, observer: undefined });
    const services = {
      ...createSharedServices({ clock, logger }),
      ledger: chain,
      outbox: this.outbox,
      keystone: NO_KEYSTONE,
    };
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

  /** What time it is. */
  get now(): string {
    return this.#opened.now;
  }

  set now(time: string) {
    this.#opened.now = time;
  }

  /** Also twice; at the latest when the test is over. */
  close(): Promise<void> {
    return this.#opened.close();
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

  /** The rows of the project, in the order of their ids. */
  rows<Name extends (typeof TABLES)[number]>(table: Name): Promise<Row<Name>[]> {
    const query = this.ledger.database.queries
      .selectFrom(table as 'leases')
      .selectAll()
      .orderBy(IN_ORDER);
    return this.#read(query.where('project_id', '=', this.project));
  }

  #read<Name extends keyof Tables>(query: Compilable<unknown>): Promise<Row<Name>[]> {
    const compiled = query.compile() as CompiledQuery<Row<Name>>;
    return this.ledger.read('read', () => rows(compiled), NO_WAIT);
  }

  /** Makes its leases those of a version that did not note what they reserve. */
  async forgetResources(): Promise<void> {
    const query = this.ledger.database.queries
      .updateTable('leases')
      .set({ resources: null })
      .where('project_id', '=', this.project);
    await this.ledger.transact('commit', () => rows(query.compile()), NO_WAIT);
  }

  /** All that the ledger holds, of every project. */
  async everything(): Promise<unknown> {
    const { queries } = this.ledger.database;
    return Promise.all(
      TABLES.map(async (name) => [
        name,
        await this.#read(queries.selectFrom(name).selectAll().orderBy(IN_ORDER)),
      ]),
    );
  }

  /** Every balance is the sum of its entries, and no more is taken of a budget than there is. */
  async verify(): Promise<void> {
    const sums = new Map<string, bigint>();
    for (const { account, delta } of await this.rows('entries')) {
      sums.set(account, (sums.get(account) ?? 0n) + delta);
    }
    const balances = new Map((await this.rows('accounts')).map(({ name, balance }) => [name, balance]));
    expect(balances).toEqual(sums);
    if (!this.#mayOverdraw) {
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
