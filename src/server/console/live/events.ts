/** `/events`: tells open pages of the console when to load again. */
import Router from '@koa/router';
import type { Context } from 'koa';
import { withinDeadline } from '../../../base/deadline.ts';
import type { RecentDecisions } from '../../../decisions/recent.ts';
import type { DecisionSource } from '../../../decisions/store/contract.ts';
import type { Generation } from '../../configuration/generation.ts';
import { EXACT } from '../../own-paths.ts';
import { type Caller, may } from '../../users/caller.ts';
import type { UserAuthenticator } from '../../users/user-authenticator.ts';
import { Listeners } from './listeners.ts';

/** How often other replicas are looked at, while somebody listens, in milliseconds. */
const LOOK = 2_000;
/** How often it is asked whether a session is still there: with every look; whether a token still is. In milliseconds. */
const ASK_SESSION = 0;
const ASK_TOKEN = 30_000;
/** Looking must not wait longer for the ledger, in seconds. */
const PATIENCE = 2;
/** In seconds. */
const RETRY_AFTER = '30';
/** New decisions that are looked at for members, in one go. */
const MOST_NEW = 500;

interface EventParts {
  readonly people: UserAuthenticator;
  readonly current: () => Generation;
  readonly recent: RecentDecisions;
}

/** Routes, and what ends all streams: call it when the service stops. */
export function eventRoutes({ people, current, recent }: EventParts): { router: Router; close: () => void } {
  const listeners = new Listeners();
  const watch = new Watch(listeners, current, recent);
  const router = new Router(EXACT);
  router.get('/events', async (ctx: Context) => {
    const asked = await askerOf(ctx, people);
    if (asked === undefined) {
      ctx.throw(401, 'expected a session, or a valid token');
    }
    if (!may(asked.caller, 'list-projects')) {
      ctx.throw(403, 'expected a caller with more rights');
    }
    const stream = listeners.open(asked);
    if (stream === undefined) {
      ctx.throw(503, 'too many pages listen already', {
        expose: true,
        headers: { 'Retry-After': RETRY_AFTER },
      });
    }
    watch.start();
    ctx.set({
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      // nginx keeps answers back otherwise.
      'X-Accel-Buffering': 'no',
    });
    ctx.type = 'text/event-stream';
    ctx.body = stream;
  });
  return {
    router,
    close: () => {
      watch.stop();
      listeners.close();
    },
  };
}

async function askerOf(ctx: Context, people: UserAuthenticator) {
  const who = async (): Promise<{ caller: Caller; isByToken: boolean } | undefined> => {
    const byToken = await people.byToken(ctx);
    const caller = byToken ?? (await people.bySession(ctx)) ?? people.anybody;
    return caller && { caller, isByToken: byToken !== undefined };
  };
  const now = await who();
  if (now === undefined) {
    return undefined;
  }
  const { caller, isByToken } = now;
  const csrf = people.csrfOf(ctx);
  const address = `address ${ctx.ip}`;
  return {
    caller,
    identity: caller.provenBy === 'nobody' ? address : caller.identity,
    // Programs that share a token of the configuration are told apart by their addresses.
    key: isByToken || csrf === '' ? address : `session ${csrf}`,
    isSession: !isByToken && csrf !== '',
    // Somebody who has got other rights meanwhile begins again.
    isStillThere: async () => JSON.stringify((await who())?.caller) === JSON.stringify(caller),
    askEvery: isByToken ? ASK_TOKEN : ASK_SESSION,
  };
}

/** Looks, as long as somebody listens, for what has happened: in this process, in other replicas, and to the configuration. */
class Watch {
  readonly #listeners: Listeners;
  readonly #current: () => Generation;
  readonly #recent: RecentDecisions;
  #timer: NodeJS.Timeout | undefined;
  #stopHearing: (() => void) | undefined;
  #seen: { generation: number; source: DecisionSource | undefined; newest: bigint | undefined };
  #isLooking = false;

  constructor(listeners: Listeners, current: () => Generation, recent: RecentDecisions) {
    this.#listeners = listeners;
    this.#current = current;
    this.#recent = recent;
    this.#seen = { generation: 0, source: undefined, newest: undefined };
  }

  start(): void {
    if (this.#timer === undefined) {
      const generation = this.#current();
      this.#seen = { generation: generation.number, source: undefined, newest: undefined };
      this.#stopHearing = this.#recent.hear((record) => this.#listeners.decided(record));
      // A connection on which nothing moves for some deadlines is closed.
      const every = Math.min(LOOK, 1000 * generation.options.deadline);
      this.#timer = setInterval(() => this.#look(), every).unref();
      this.#look();
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#stopHearing?.();
    this.#stopHearing = undefined;
  }

  #look(): void {
    if (this.#listeners.isEmpty) {
      this.stop();
      return;
    }
    const { number } = this.#current();
    if (number !== this.#seen.generation) {
      this.#seen = { ...this.#seen, generation: number };
      // Who they are was found with the rules of the one before, whose Keystone and sessions are asked no more.
      this.#listeners.beginAgain();
    }
    this.#listeners.tick();
    if (!this.#isLooking) {
      this.#isLooking = true;
      void this.#lookAround()
        // The ledger is away, as every page says.
        .catch(() => {})
        .finally(() => {
          this.#isLooking = false;
        });
    }
  }

  async #lookAround(): Promise<void> {
    const generation = this.#current();
    const source = generation.decisions?.source;
    if (source === undefined) {
      return;
    }
    // A reload must not close the store meanwhile.
    generation.enter();
    try {
      await withinDeadline(PATIENCE, async (deadline) => {
        const newest = await source.newest(deadline);
        const { newest: before } = this.#seen;
        const isKnown = source === this.#seen.source && before !== undefined;
        this.#seen = { ...this.#seen, source, newest };
        if (!isKnown || newest <= before) {
          return;
        }
        this.#listeners.changed('service');
        if (this.#listeners.hasMembers) {
          const query = { newerThan: before, limit: MOST_NEW, after: undefined };
          for (const { record } of (await source.search(query, deadline)).items) {
            this.#listeners.decided(record);
          }
        }
      });
    } finally {
      generation.leave();
    }
  }
}
