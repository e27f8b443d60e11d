/** `/events`: notifies open pages of the console when to reload. */
import Router from '@koa/router';
import type { Context } from 'koa';
import { withinDeadline } from '../../../base/deadline.ts';
import type { DecisionSource } from '../../../decisions/store/contract.ts';
import type { Ledger } from '../../../ledger/ledger.ts';
import type { Generation } from '../../configuration/generation.ts';
import type { RecentDecisions } from '../../decisions/recorder.ts';
import { EXACT } from '../../own-paths.ts';
import { may } from '../../users/caller.ts';
import { requesterOf, type UserAuthenticator } from '../../users/user-authenticator.ts';
import { Listeners } from './listeners.ts';

/**
 * Polling interval for other replicas while pages are open, in milliseconds. Replicas store decisions within
 * 100 ms, and changes are sent within 500 ms: pages are notified in less than two seconds.
 */
const LOOK = 500;
/** Delay after the database did not answer, in milliseconds. */
const LOOK_AGAIN = 2_000;
/** How often sessions and tokens are validated again, in milliseconds. */
const ASK_SESSION = 2_000;
const ASK_TOKEN = 30_000;
/** Timeout of a poll of the database, in seconds. */
const PATIENCE = 2;
/** In seconds. */
const RETRY_AFTER = '30';

interface EventParts {
  readonly users: UserAuthenticator;
  readonly current: () => Generation;
  readonly recent: RecentDecisions;
}

/** Routes, and a function that ends all streams: call it when the service stops. */
export function eventRoutes({ users, current, recent }: EventParts): { router: Router; close: () => void } {
  const listeners = new Listeners();
  const watch = new Watch(listeners, current, recent);
  const router = new Router(EXACT);
  router.get('/events', async (ctx: Context) => {
    const asked = await listenerOf(ctx, users);
    if (asked === undefined) {
      ctx.throw(401, 'expected a session, or a valid token');
    }
    if (!may(asked.caller, 'list-projects')) {
      ctx.throw(403, 'expected a caller with more rights');
    }
    const stream = listeners.open(asked);
    if (stream === undefined) {
      ctx.throw(503, 'too many pages have live updates already', {
        expose: true,
        headers: { 'Retry-After': RETRY_AFTER },
      });
    }
    // Before the first event: later decisions must be noticed.
    await watch.start();
    ctx.set({
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      // Otherwise nginx buffers the response.
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

async function listenerOf(ctx: Context, users: UserAuthenticator) {
  const now = await requesterOf(ctx, users);
  if (now === undefined) {
    return undefined;
  }
  const { caller, by } = now;
  const csrf = users.csrfOf(ctx);
  const address = `address ${ctx.ip}`;
  const isSession = by !== 'token' && csrf !== '';
  return {
    caller,
    identity: caller.provenBy === 'nobody' ? address : caller.identity,
    // Programs that share a configured token are distinguished by their addresses.
    key: isSession ? `session ${csrf}` : address,
    isSession,
    // If the rights of the caller have changed, the client must reconnect.
    isStillThere: async () =>
      JSON.stringify((await requesterOf(ctx, users))?.caller) === JSON.stringify(caller),
    askEvery: by === 'token' ? ASK_TOKEN : ASK_SESSION,
  };
}

interface Seen {
  readonly source: DecisionSource;
  /** The highest id of a decision. */
  readonly newest: bigint;
  /** The recently written projects, with their revisions. */
  readonly revisions: ReadonlyMap<string, bigint>;
}

/**
 * While pages are open, watches for changes in this process, in other replicas, and of the configuration.
 * Other replicas are polled over an existing database connection: notifications of PostgreSQL would need a
 * connection of their own and do not pass PgBouncer, and SQLite has none.
 */
class Watch {
  readonly #listeners: Listeners;
  readonly #current: () => Generation;
  readonly #recent: RecentDecisions;
  #timer: NodeJS.Timeout | undefined;
  #stopListening: (() => void) | undefined;
  #generation = 0;
  #seen: Seen | undefined;
  /** Projects with decisions of this process: between the last two polls, and since the last one. */
  #ownBefore = new Set<string>();
  #own = new Set<string>();
  #looking: Promise<void> | undefined;
  /** Whether the last poll failed, and the earliest time of the next one, in milliseconds. */
  #isAway = false;
  #nextLook = 0;

  constructor(listeners: Listeners, current: () => Generation, recent: RecentDecisions) {
    this.#listeners = listeners;
    this.#current = current;
    this.#recent = recent;
  }

  /** Resolves after the first poll, even if it failed. */
  start(): Promise<void> {
    if (this.#timer === undefined) {
      this.#generation = this.#current().number;
      this.#seen = undefined;
      this.#stopListening = this.#recent.listen((record) => {
        this.#listeners.decided(record);
        if (record.project_id !== null) {
          this.#own.add(record.project_id);
        }
      });
      this.#timer = setInterval(() => this.#look(), LOOK).unref();
      this.#look();
    }
    return this.#looking ?? Promise.resolve();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  #look(): void {
    if (this.#listeners.isEmpty) {
      this.stop();
      return;
    }
    const { number, options } = this.#current();
    if (number !== this.#generation) {
      this.#generation = number;
      // Callers were authenticated by the old configuration, whose Keystone and sessions are no longer used.
      this.#listeners.beginAgain();
    }
    this.#listeners.tick(performance.now(), options.deadline);
    if (this.#looking === undefined && performance.now() >= this.#nextLook) {
      this.#looking = this.#lookAround()
        .then(
          () => this.#looked(false),
          () => this.#looked(true),
        )
        .finally(() => {
          this.#looking = undefined;
        });
    }
  }

  /** Pages show whether the database is unavailable: then they list decisions of this process. */
  #looked(isAway: boolean): void {
    if (isAway) {
      this.#nextLook = performance.now() + LOOK_AGAIN;
    }
    if (isAway !== this.#isAway) {
      this.#isAway = isAway;
      this.#listeners.tellAll();
    }
  }

  async #lookAround(): Promise<void> {
    const generation = this.#current();
    const source = generation.decisions?.source;
    this.#ownBefore = this.#own;
    this.#own = new Set();
    if (source === undefined) {
      return;
    }
    // Keeps a reload from closing the store during the poll.
    generation.enter();
    try {
      await withinDeadline(PATIENCE, async (deadline) => {
        const before = this.#seen?.source === source ? this.#seen : undefined;
        const ledgers = await ledgersOf(generation);
        const { newest, decided } =
          before === undefined
            ? { newest: await source.newest(deadline), decided: [] }
            : await source.changesSince(before.newest, deadline);
        const revisions = ledgers.length === 0 ? new Map() : await source.revisions(deadline);
        this.#seen = { source, newest, revisions };
        if (before !== undefined) {
          for (const one of decided) {
            this.#listeners.decided(one);
          }
          this.#tellOfLedger(before.revisions, ledgers);
        }
      });
    } finally {
      generation.leave();
    }
  }

  /** Changes without a stored decision, such as allowed leases, are noticed by the project's revision. */
  #tellOfLedger(before: ReadonlyMap<string, bigint>, ledgers: readonly Ledger[]): void {
    for (const [projectId, revision] of this.#seen?.revisions ?? []) {
      // This process has already sent its own changes.
      const isTold =
        (this.#own.has(projectId) || this.#ownBefore.has(projectId)) &&
        ledgers.some((ledger) => ledger.hasSeen(projectId, revision));
      if (before.get(projectId) !== revision && !isTold) {
        this.#listeners.changed(projectId);
      }
    }
  }
}

async function ledgersOf({ enforcement, skypilot }: Generation): Promise<Ledger[]> {
  const services = [enforcement.ledger, skypilot.policies.launches?.views];
  const found = await Promise.all(services.map((service) => service?.read(async (ledger) => ledger)));
  return found.filter((ledger) => ledger !== undefined);
}
