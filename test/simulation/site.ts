/** All that one history has: replicas on one ledger, a Blazar, an external service, their clocks, and what was promised to whom. */
import { copyFileSync, rmSync } from 'node:fs';
import type { Configuration } from '../../src/enforcement/configuration.ts';
import { Blazar } from './blazar.ts';
import { Follower } from './follower.ts';
import { Replica } from './replica.ts';
import { type Actor, type Chance, Schedule } from './schedule.ts';

/** `[ledger] commit` */
export type Commit = 'check' | 'request';

/** What all histories share. */
export interface SharedServices {
  /** The file of the ledger, and an empty one with budgets. */
  readonly file: string;
  readonly empty: string;
  configure(commit: Commit, hasService: boolean): Configuration;
  /** When the budgets begin to matter, in seconds of the epoch. */
  readonly begin: number;
}

/** Clocks that differ by so much, in seconds, are those of a healthy site: what is charged is compared with the truth at each step. */
export const SYNCHRONIZED = 1;
/** How wrong clocks may be otherwise, in seconds. */
const WRONG = [30, 300, 3600, 24 * 3600] as const;

/** A lease as Blazar and the ledger both know it. */
export interface LeaseForm {
  /** `null` = the ledger does not know it. */
  readonly id: string | null;
  readonly user: string;
  /** In seconds of the epoch. */
  readonly start: number;
  readonly end: number;
}

/** A promise that was broken. */
export class BrokenPromise extends Error {}

export class Site {
  readonly chance: Chance;
  readonly schedule: Schedule;
  readonly blazar = new Blazar();
  readonly follower: Follower;
  readonly replicas: Replica[] = [];
  readonly begin: number;
  readonly commit: Commit;
  /** Whether there is an external service, and an outbox. */
  readonly hasService: boolean;
  /** The largest difference of a clock, in seconds: those of the replicas, of their database and of Blazar. */
  readonly skew: number;
  /** Whether all replicas have the clock of their database, as on PostgreSQL. */
  readonly hasOneClock: boolean;
  /** By how much the clock of the database is ahead, in seconds. */
  databaseAhead: number;
  /** How often a request or an answer gets lost. */
  readonly losses: number;
  /** How often a transaction fails. */
  readonly faults: number;
  readonly hasCrashes: boolean;
  now: number;
  /** Leases that Blazar was allowed and has not built yet. */
  readonly building = new Map<string, LeaseForm>();
  /** What rounds have released. */
  readonly released: LeaseForm[] = [];
  /** Leases that Blazar is changing or ending. */
  readonly busy = new Set<string>();
  /** How many leases may be in the ledger that Blazar does not have. */
  unknown = 0;
  /** How many ends the ledger may not have heard of. */
  unheard = 0;
  /** Whether something was charged that Blazar then did not do: what was used by the time it is found stays charged. */
  hasWasted = false;
  /** How many seconds have passed between our answers and what Blazar then did. */
  delays = 0;
  /** Whether a lease was changed: what it may have been until a comparison stays charged. */
  hasChanged = false;
  /** How many changes were measured by a clock that is not Blazar's. */
  measured = 0;
  /** How many changes were seen by comparing alone. */
  corrected = 0;
  /** Whether Blazar changes leases without asking: its operator has taken the filters away for a while. */
  readonly mayNotAsk: boolean;
  /** Whether it has: then what is there may be above all limits, and is charged from the next comparison on. */
  hasNotAsked = false;
  /** Whether users have Blazar start leases early, and how often Blazar cannot end one. */
  mayBeginEarly = false;
  failedEnds = 0;
  /** Whether some lease was in use outside its dates: what it uses then was not asked for. */
  hasOverrun = false;
  /** How many hosts leases that look alike were asked for with. */
  readonly asked = new Map<string, Set<number>>();
  /**
   * Whether there are leases that look alike and have other hosts. While the ledger does not know their ids, an update or a comparison may take
   * one for the other, and charges what Blazar shows of it, even above what is granted, until the other one is known, too.
   */
  mayMistake = false;
  /** Leases whose end was acknowledged, and those whose end the external service was told. */
  readonly ended = new Set<string>();
  readonly told = new Set<string>();
  isServiceDown = false;
  isQuiet = false;
  underWay = 0;
  readonly lines: string[] = [];
  readonly #shared: SharedServices;
  readonly #blazarActor: Actor = { name: 'Blazar', mayGo: true };
  #failure: string | undefined;
  #names = 0;

  private constructor(shared: SharedServices, chance: Chance) {
    this.#shared = shared;
    this.chance = chance;
    this.begin = shared.begin;
    this.now = shared.begin - 3600;
    this.commit = chance.pick(['check', 'check', 'request']);
    this.hasService = chance.happens(0.35);
    this.skew = chance.pick([0, 0, 0, SYNCHRONIZED, ...WRONG]);
    this.hasOneClock = chance.happens(0.5);
    this.databaseAhead = this.#someSkew();
    this.blazar.ahead = this.#someSkew(0.8);
    this.losses = chance.pick([0, 0.1, 0.2]);
    this.faults = chance.pick([0, 0, 0.05]);
    this.hasCrashes = chance.happens(0.6);
    this.mayNotAsk = chance.happens(0.15);
    this.schedule = new Schedule(chance, (line) => this.log(line));
    this.follower = new Follower(this.schedule, this.blazar, () => this.now, {
      step: () => this.#mayJump(),
      isTakenOver: () => this.#isAmiss && chance.happens(0.3),
      isCutOff: () => !this.isQuiet && chance.happens(this.losses / 4),
    });
  }

  static async open(shared: SharedServices, chance: Chance): Promise<Site> {
    for (const ending of ['', '-wal', '-shm', '-journal']) {
      rmSync(`${shared.file}${ending}`, { force: true });
    }
    copyFileSync(shared.empty, shared.file);
    const site = new Site(shared, chance);
    const count = 1 + chance.below(3);
    for (let index = 0; index < count; index += 1) {
      await site.startReplica();
    }
    // The last ones: they change nothing of histories without them.
    site.mayBeginEarly = chance.happens(0.2);
    site.failedEnds = chance.pick([0, 0, 0, 0.4]);
    return site;
  }

  async startReplica(): Promise<void> {
    this.#names += 1;
    const replica = await Replica.start({
      name: `service ${this.#names}`,
      configuration: this.#shared.configure(this.commit, this.hasService),
      schedule: this.schedule,
      chance: this.chance,
      faults: this.faults,
      now: () => this.now,
      ahead: this.#someSkew(),
      database: this.hasOneClock ? () => this.now + this.databaseAhead : undefined,
      post: (url, json) => this.#answer(url, json),
      log: (line) => this.log(line),
    });
    replica.isFaulty = !this.isQuiet;
    this.replicas.push(replica);
  }

  /** The clock of a replica, of the database or of Blazar is set anew. */
  jump(): void {
    const { chance, replicas, blazar } = this;
    const ahead = this.#someSkew();
    const replica = chance.happens(0.5) ? chance.some(replicas) : undefined;
    if (replica !== undefined) {
      replica.ahead = ahead;
    } else if (chance.happens(0.5)) {
      this.databaseAhead = ahead;
    } else {
      blazar.ahead = ahead;
    }
    this.log(`the clock of ${replica?.name ?? 'the database or Blazar'} is ${ahead} s ahead`);
  }

  #mayJump(): void {
    if (this.#isAmiss && this.chance.happens(0.15)) {
      this.jump();
    }
  }

  /** Whether clocks may be far from each other now. */
  get #isAmiss(): boolean {
    return !this.isQuiet && this.skew > SYNCHRONIZED;
  }

  /** All clocks are set right. */
  setClocks(): void {
    this.databaseAhead = 0;
    this.blazar.ahead = 0;
    for (const replica of this.replicas) {
      replica.ahead = 0;
    }
  }

  /** A turn of Blazar's. */
  turn(what: string): Promise<void> {
    return this.schedule.turn(this.#blazarActor, what);
  }

  /** Begins some work of Blazar's or of a replica's, which ends some time. */
  begins(work: Promise<unknown>): void {
    this.underWay += 1;
    work.then(
      () => {
        this.underWay -= 1;
      },
      (thrown: unknown) =>
        this.fail(thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)),
    );
  }

  log(line: string): void {
    this.lines.push(`${this.now - this.begin} ${line}`);
  }

  fail(why: string): void {
    this.#failure ??= why;
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) {
      throw new BrokenPromise(this.#failure);
    }
  }

  /** `right`: how often it is none. */
  #someSkew(right = 0.4): number {
    const isRight = this.isQuiet || this.skew === 0 || this.chance.happens(right);
    return isRight ? 0 : this.chance.below(2 * this.skew + 1) - this.skew;
  }

  async #answer(url: string, json: string) {
    if (this.isServiceDown) {
      return { status: 503, body: '' };
    }
    const { lease } = JSON.parse(json) as { lease: { id?: string } };
    if (url.endsWith('/on-end') && lease.id !== undefined) {
      this.told.add(lease.id);
    }
    // It has heard, and its answer is lost: it is told twice.
    return !this.isQuiet && this.chance.happens(0.2) ? { status: 502, body: '' } : { status: 204, body: '' };
  }
}
