/**
 * Decides lease requests by a configuration in isolation: no network, and a ledger and clock of its own.
 * Independent of cases.
 */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { withinDeadline } from '../../base/deadline.ts';
import { ConfigurationError } from '../../base/errors.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { UsageEnforcement } from '../../enforcement/enforcement.ts';
import type { RuleObserver, SharedServices } from '../../filter/services.ts';
import type { Decision } from '../../filter/verdict.ts';
import type { Instant } from '../../lease/dates.ts';
import type { CreateRequest, UpdateRequest } from '../../lease/lease.ts';
import type { ChainLedger } from '../../ledger/service.ts';
import type { Keystone } from '../../openstack/contract.ts';
import { causeLogger } from '../cases/explanations.ts';

/** Default if not configured, in seconds. */
const DEADLINE = 30;

export type TriedRequest =
  | ({ readonly operation: 'create' } & CreateRequest)
  | ({ readonly operation: 'update' } & UpdateRequest);

interface TrialContext {
  /** Microseconds of the epoch. `undefined` = the clock of the machine. */
  readonly now: Instant | undefined;
  readonly keystone: Keystone;
  readonly http: SharedServices['http'];
  readonly ruleObserver?: RuleObserver | undefined;
  /** Shared by trials, and closed by its creator. */
  readonly ledgers: EmptyLedgers;
}

interface Tried {
  readonly decision: Decision;
  /** Why filters failed, from the log: users only see that they failed. */
  readonly causes: readonly string[];
}

interface TrialParts {
  readonly enforcement: UsageEnforcement;
  readonly clock: TrialClock;
  readonly causes: string[];
  readonly folder: string;
  readonly deadline: number;
}

export class LeaseTrial {
  readonly #parts: TrialParts;

  private constructor(parts: TrialParts) {
    this.#parts = parts;
  }

  /** `configuration`: from `requireConfiguration`, with `SECTIONS`. @throws ConfigurationError */
  static async open(configuration: Configuration, trialContext: TrialContext): Promise<LeaseTrial> {
    const { now, keystone, http, ruleObserver, ledgers } = trialContext;
    const causes: string[] = [];
    const clock = new TrialClock(now);
    const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-test-'));
    const file = join(folder, 'ledger.db');
    try {
      const own = apart(configuration, file);
      const parts = { logger: causeLogger(causes), clock, keystone, http, ruleObserver };
      const open = () => UsageEnforcement.fromConfiguration(own, parts);
      const enforcement = await open().catch(async (thrown: unknown) => {
        if (!needsLedger(thrown)) {
          throw thrown;
        }
        await ledgers.at(file);
        return open();
      });
      return new LeaseTrial({ enforcement, clock, causes, folder, deadline: deadlineOf(configuration) });
    } catch (thrown) {
      remove(folder);
      throw thrown;
    }
  }

  /** The ledger to fill. `undefined` = no filter uses it. */
  get ledger(): ChainLedger | undefined {
    return this.#parts.enforcement.ledger;
  }

  get claimants() {
    return this.#parts.enforcement.claimants;
  }

  /** Microseconds of the epoch. */
  now(): Instant {
    return BigInt(this.#parts.clock.now().getTime()) * 1000n;
  }

  async at<Result>(time: Instant, work: () => Promise<Result>): Promise<Result> {
    const { clock } = this.#parts;
    const before = clock.time;
    clock.time = Number(time / 1000n);
    try {
      return await work();
    } finally {
      clock.time = before;
    }
  }

  /** Decides like the service, and records the lease if it is allowed. */
  async judge(request: TriedRequest, { acceptsChanges = false } = {}): Promise<Tried> {
    this.#parts.causes.length = 0;
    const decision = await withinDeadline(this.#parts.deadline, (deadline) => {
      const options = { deadline, acceptsChanges };
      return request.operation === 'create'
        ? this.#parts.enforcement.checkCreate(request, options)
        : this.#parts.enforcement.checkUpdate(request, options);
    });
    return { decision, causes: [...this.#parts.causes] };
  }

  async close(): Promise<void> {
    await this.#parts.enforcement.close();
    remove(this.#parts.folder);
  }
}

/** A stopped clock, or that of the machine. */
class TrialClock {
  /** In milliseconds since 1970. */
  time: number | undefined;

  constructor(now: Instant | undefined) {
    this.time = now === undefined ? undefined : Number(now / 1000n);
  }

  now(): Date {
    return this.time === undefined ? new Date() : new Date(this.time);
  }
}

function needsLedger(thrown: unknown): boolean {
  return thrown instanceof ConfigurationError && thrown.problems.some(({ section }) => section === 'ledger');
}

/** In seconds. Other options of `[service]` may be wrong here. */
function deadlineOf({ settings }: Configuration): number {
  const found = settings.find(({ option }) => option.section === 'service' && option.name === 'deadline');
  return typeof found?.value === 'number' ? found.value : DEADLINE;
}

/** Replaces the database with a file of the trial, and disables notifications. */
function apart(configuration: Configuration, file: string): Configuration {
  const own: Readonly<Record<string, unknown>> = {
    'ledger.connection': `sqlite://${file}`,
    'ledger.commit': 'check',
    'ledger.doubt_folder': '',
    'notifications.webhook_url': undefined,
    'notifications.smtp_url': undefined,
  };
  return {
    ...configuration,
    settings: configuration.settings.map((setting) => {
      const name = `${setting.option.section}.${setting.option.name}`;
      return Object.hasOwn(own, name) ? { ...setting, value: own[name], input: own[name] } : setting;
    }),
  };
}

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

export class EmptyLedgers {
  #made: Promise<string> | undefined;

  /** Creates an empty ledger at this path. */
  async at(file: string): Promise<void> {
    this.#made ??= make();
    copyFileSync(join(await this.#made, 'ledger.db'), file);
  }

  async close(): Promise<void> {
    const folder = await this.#made?.catch(() => undefined);
    if (folder !== undefined) {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

async function make(): Promise<string> {
  const { upgradeLedger } = await import('../../ledger/open.ts');
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-test-'));
  try {
    const connection = `sqlite://${join(folder, 'ledger.db')}`;
    await upgradeLedger({ connection, commit: 'check', timeout: 10, pool_size: 1 });
    return folder;
  } catch (thrown) {
    rmSync(folder, { recursive: true, force: true });
    throw thrown;
  }
}
