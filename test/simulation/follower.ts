/** Rounds that compare the ledger with Blazar. One replica at a time makes them; what a round leaves is kept here, by virtual time. */
import type { Reconciled } from '../../src/ledger/rounds/reconcile-lease.ts';
import { followOnce, readOpenRows } from '../../src/ledger/rounds/round.ts';
import { observe } from '../../src/openstack/observation.ts';
import { NO_WAIT } from '../support/ledgers.ts';
import type { Blazar } from './blazar.ts';
import type { Replica } from './replica.ts';
import type { Schedule } from './schedule.ts';

/** Seconds that a lease may be recorded before Blazar shows it. */
export const GRACE = 600;

export class Follower {
  /** Who makes a round now. */
  #holder: Replica | undefined;
  /** When the last complete round ended, in seconds. */
  #followedAt = Number.NEGATIVE_INFINITY;
  #doubted: ReadonlySet<bigint> = new Set();
  readonly #schedule: Schedule;
  readonly #blazar: Blazar;
  readonly #now: () => number;

  constructor(schedule: Schedule, blazar: Blazar, now: () => number) {
    this.#schedule = schedule;
    this.#blazar = blazar;
    this.#now = now;
  }

  /** Resolves to what was changed; `undefined` = another replica is at it. A crash or a failure ends it. */
  async round(replica: Replica): Promise<Reconciled[] | undefined> {
    if (this.#holder !== undefined && !this.#holder.isDead) {
      return undefined;
    }
    this.#holder = replica;
    try {
      return await Promise.race([replica.gone, this.#run(replica)]);
    } catch {
      return undefined;
    } finally {
      if (this.#holder === replica) {
        this.#holder = undefined;
      }
    }
  }

  async #run(replica: Replica): Promise<Reconciled[]> {
    const { ledger } = replica;
    const age = this.#now() - this.#followedAt;
    await this.#schedule.turn(replica, 'reads the open leases');
    const before = await this.#schedule.during(readOpenRows(ledger, '', NO_WAIT, replica.known));
    const { leases, doubts } = await observe({
      ...{ keystone: this.#keystone(replica), endpoint: 'http://blazar/v1', signal: undefined },
      now: () => ledger.now(),
      openAt: before.readAt,
    });
    const options = {
      ...{ region: '', claimants: replica.enforcement.claimants, who: 'follower', reason: null },
      ...{ exemptProjects: [], grace: BigInt(GRACE), isDryRun: false, doubts, isKnownEndpoint: true },
      ...{ doubted: this.#doubted, looksOften: age <= GRACE },
    };
    const round = followOnce(ledger, before, leases, options, NO_WAIT);
    const done: Reconciled[] = [];
    let next = await round.next();
    while (!next.done) {
      done.push(next.value);
      next = await round.next();
    }
    this.#doubted = next.value.doubted;
    if (next.value.doubts.length === 0) {
      this.#followedAt = this.#now();
    }
    return done;
  }

  #keystone(replica: Replica) {
    const named = { id: 'service', name: 'service', domain: 'Default' };
    return {
      get: async (url: string) => {
        await this.#schedule.turn(replica, `asks Blazar for ${url.slice(url.lastIndexOf('/') + 1)}`);
        const headers = { date: new Date((this.#now() + this.#blazar.ahead) * 1000).toUTCString() };
        return { status: 200, body: this.#blazar.answer(url), headers };
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
