/** One replica of the service on the shared ledger. It can crash between any two steps, freeze, and have a clock of its own. */

import type { Configuration } from '../../src/enforcement/configuration.ts';
import type { HttpAnswer } from '../../src/index.ts';
import { LedgerUnavailableError, UsageEnforcement } from '../../src/index.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { RowAges } from '../../src/ledger/reconciliation/reconcile.ts';
import { CommitInDoubtError, type Database, type Work } from '../../src/ledger/storage/database.ts';
import { NO_WAIT } from '../support/ledgers.ts';
import type { Actor, Chance, Schedule } from './schedule.ts';

export interface ReplicaParts {
  readonly name: string;
  readonly configuration: Configuration;
  readonly schedule: Schedule;
  readonly chance: Chance;
  /** Seconds of the epoch. */
  readonly now: () => number;
  /** By how much its clock is ahead, in seconds. */
  readonly ahead: number;
  /** The clock of the database, in seconds of the epoch; `undefined` = the ledger has that of the replica. */
  readonly database: (() => number) | undefined;
  /** How often a transaction fails before it begins and half way, and how often its COMMIT is not answered. */
  readonly faults: number;
  /** The external service. */
  readonly post: (url: string, json: string) => Promise<HttpAnswer>;
  readonly log: (line: string) => void;
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

export class Replica implements Actor {
  readonly name: string;
  ahead: number;
  isFrozen = false;
  /** Whether transactions may fail now. */
  isFaulty = true;
  /** Resolves when it has crashed. */
  readonly gone: Promise<undefined>;
  /** What its rounds have seen: its monotonic clock is right, whatever the others say. */
  readonly known: RowAges;
  readonly #parts: ReplicaParts;
  readonly #callers: ((nothing: undefined) => void)[] = [];
  #isDead = false;
  #die: (nothing: undefined) => void = () => {};
  #enforcement: UsageEnforcement | undefined;
  #ledger: Ledger | undefined;

  private constructor(parts: ReplicaParts) {
    this.#parts = parts;
    this.name = parts.name;
    this.ahead = parts.ahead;
    this.known = new RowAges(() => parts.now() * 1000);
    this.gone = new Promise((resolve) => {
      this.#die = resolve;
    });
  }

  static async start(parts: ReplicaParts): Promise<Replica> {
    const replica = new Replica(parts);
    const { configuration, now, post, schedule, log } = parts;
    const clock = { now: () => new Date((now() + replica.ahead) * 1000) };
    const client = {
      postJson: async (url: string, json: string) => {
        await schedule.turn(replica, `calls ${url}`);
        return post(url, json);
      },
      get: () => Promise.reject(new Error('nothing is read')),
      close: async () => {},
    };
    const logger = { ...SILENT, error: (_: unknown, text?: string) => log(`${parts.name} logs: ${text}`) };
    const enforcement = await UsageEnforcement.fromConfiguration(configuration, {
      clock,
      logger,
      http: { createClient: () => client },
    });
    replica.#enforcement = enforcement;
    const ledger = await enforcement.ledger?.ledger(NO_WAIT);
    if (ledger === undefined) {
      throw new Error('expected filters on the ledger');
    }
    replica.#ledger = ledger;
    const { database } = parts;
    if (database !== undefined) {
      ledger.now = () => BigInt(database()) * 1_000_000n;
    }
    replica.#interrupt(ledger.database);
    enforcement.deliver();
    return replica;
  }

  get mayGo(): boolean {
    return !this.#isDead && !this.isFrozen;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  get enforcement(): UsageEnforcement {
    if (this.#enforcement === undefined) {
      throw new Error('expected a started replica');
    }
    return this.#enforcement;
  }

  /** `kill -9`: nothing of it goes on. */
  crash(): void {
    this.#isDead = true;
    this.#parts.schedule.drop(this);
    void this.#ledger?.database.close();
    this.#die(undefined);
  }

  /** Resolves when whoever waits for its answers gives up. */
  callersLeave(): Promise<undefined> {
    return new Promise((resolve) => this.#callers.push(resolve));
  }

  /** Everybody who waits for an answer of it gives up. */
  lose(): void {
    for (const leave of this.#callers.splice(0)) {
      leave(undefined);
    }
  }

  /** Its ledger, as the follower has it. */
  get ledger(): Ledger {
    if (this.#ledger === undefined) {
      throw new Error('expected a started replica');
    }
    return this.#ledger;
  }

  /** Others get turns before and after each transaction, and it may fail before it or half way, or be left without its answer. */
  #interrupt(database: Database): void {
    const { schedule, chance, faults } = this.#parts;
    const transact = database.transact.bind(database);
    const read = database.read.bind(database);
    database.read = async (work, wait) => {
      await schedule.turn(this, 'reads');
      return schedule.during(read(work, wait));
    };
    database.transact = async (work, wait, project) => {
      await schedule.turn(this, 'begins a transaction');
      if (this.isFaulty && chance.happens(faults)) {
        throw new LedgerUnavailableError('the database cannot be reached');
      }
      // Whatever is committed together with it goes on.
      const steps = this.isFaulty && chance.happens(faults) ? chance.below(FEW_STEPS) : undefined;
      const begun = steps === undefined ? work : () => failing(work(), steps);
      const result = await schedule.during(transact(begun, wait, project));
      await schedule.turn(this, 'has committed');
      if (this.isFaulty && chance.happens(faults)) {
        throw new CommitInDoubtError('the COMMIT was not answered', result, {});
      }
      return result;
    };
  }
}

/** More than most transactions have. */
const FEW_STEPS = 12;

/** Fails after so many statements, if there are more. */
function* failing<Result>(work: Work<Result>, steps: number): Work<Result> {
  let step = work.next([]);
  for (let count = 0; !step.done; count += 1) {
    if (count === steps) {
      throw new LedgerUnavailableError('the transaction fails half way');
    }
    step = work.next(yield step.value);
  }
  return step.value;
}
