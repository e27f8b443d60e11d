/** Reconciler that compare the ledger with Blazar. One replica at a time makes them; what a round leaves is kept here, by virtual time. */
import type { Reconciled } from '../../src/ledger/reconciliation/change-lease.ts';
import { readOpenRows, reconcileObservation } from '../../src/ledger/reconciliation/reconcile.ts';
import { observe } from '../../src/server/followers/blazar-observation.ts';
import { NO_WAIT } from '../support/ledgers.ts';
import type { Blazar } from './blazar.ts';
import type { Replica } from './replica.ts';
import type { Schedule } from './schedule.ts';

/** Seconds that a lease may be recorded before Blazar shows it. */
export const GRACE = 600;

/** What may happen at each step of a round. */
export interface Mishaps {
  /** Clocks may be set. */
  step(): void;
  /** Whether another replica begins a round meanwhile: a clock that is set back takes the leader lease from its holder. */
  isTakenOver(): boolean;
  /** Whether an answer of Blazar arrives in part. */
  isCutOff(): boolean;
}

export class Follower {
  /** Who makes a round now. */
  #holder: Replica | undefined;
  /** When the last complete round ended, in seconds. */
  #followedAt = Number.NEGATIVE_INFINITY;
  #doubted: ReadonlySet<bigint> = new Set();
  readonly #schedule: Schedule;
  readonly #blazar: Blazar;
  readonly #now: () => number;
  readonly #mishaps: Mishaps;

  constructor(schedule: Schedule, blazar: Blazar, now: () => number, mishaps: Mishaps) {
    this.#schedule = schedule;
    this.#blazar = blazar;
    this.#now = now;
    this.#mishaps = mishaps;
  }

  /**
   * Resolves to what was changed, also by a round that fails half way or crashes; `undefined` = another replica is at it. `isByHand`: by
   * `ledger reconcile --blazar`, which remembers nothing.
   */
  async round(replica: Replica, isByHand: boolean): Promise<Reconciled[] | undefined> {
    if (this.#holder !== undefined && !this.#holder.isDead && !this.#mishaps.isTakenOver()) {
      return undefined;
    }
    this.#holder = replica;
    const done: Reconciled[] = [];
    try {
      await Promise.race([replica.gone, this.#run(replica, isByHand, done)]);
    } catch {
      // What was done before stays done.
    } finally {
      if (this.#holder === replica) {
        this.#holder = undefined;
      }
    }
    return done;
  }

  async #run(replica: Replica, isByHand: boolean, done: Reconciled[]): Promise<void> {
    const { ledger } = replica;
    const age = this.#now() - this.#followedAt;
    const known = isByHand ? undefined : replica.known;
    const begunAt = this.#now();
    const held = [...this.#blazar.leases.values()];
    await this.#turn(replica, 'reads the open leases');
    const before = await this.#schedule.during(readOpenRows(ledger, '', NO_WAIT, known));
    this.#mishaps.step();
    let answeredAt = Number.POSITIVE_INFINITY;
    const { leases, overdue, doubts } = await observe({
      keystone: this.#keystone(replica, () => {
        answeredAt = Math.min(answeredAt, this.#now());
      }),
      endpoint: 'http://blazar/v1',
      signal: undefined,
      now: () => ledger.now(),
      openAt: before.readAt,
    });
    const options = {
      region: '',
      claimants: replica.enforcement.claimants,
      who: 'follower',
      reason: null,
      exemptProjects: [],
      grace: BigInt(GRACE),
      isDryRun: false,
      doubts,
      overdue,
      isKnownEndpoint: true,
      otherEndpoints: [],
      doubted: this.#doubted,
      looksOften: age <= GRACE,
    };
    const round = reconcileObservation(ledger, before, leases, options, NO_WAIT);
    let next = await round.next();
    while (!next.done) {
      done.push(next.value);
      this.#mishaps.step();
      next = await round.next();
    }
    if (next.value.doubts.length === 0) {
      this.#blazar.see(held, begunAt, answeredAt);
    }
    if (this.#holder !== replica) {
      // Another one has the leader lease by now, and what it leaves counts.
      return;
    }
    this.#doubted = next.value.doubted;
    if (next.value.doubts.length === 0) {
      this.#followedAt = this.#now();
    }
  }

  async #turn(replica: Replica, what: string): Promise<void> {
    await this.#schedule.turn(replica, what);
    this.#mishaps.step();
  }

  #keystone(replica: Replica, answered: () => void) {
    const named = { id: 'service', name: 'service', domain: 'Default' };
    return {
      get: async (url: string) => {
        const what = url.slice(url.lastIndexOf('/') + 1);
        await this.#turn(replica, `asks Blazar for ${what}`);
        const headers = { date: new Date((this.#now() + this.#blazar.ahead) * 1000).toUTCString() };
        const body = this.#blazar.answer(url, this.#now());
        // Whatever happens until it arrives is not in it.
        await this.#turn(replica, `hears from Blazar of ${what}`);
        answered();
        return { status: 200, body: this.#mishaps.isCutOff() ? body.slice(0, -9) : body, headers };
      },
      token: async () => 'token',
      refused() {},
      endpoint: async () => 'http://blazar/v1',
      getIdentity: () => Promise.reject(new Error('there is no Keystone')),
      validate: async () => ({ expiresAt: 0, user: named, project: named, roles: ['admin'] }),
      close: async () => {},
    };
  }
}
