/** Compares the ledger with Blazar again and again, one round after the other, as the current configuration says. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Configuration, sectionOf } from '../enforcement/configuration.ts';
import type { UsageEnforcement } from '../enforcement/enforcement.ts';
import { errorText } from '../errors.ts';
import type { Reconciled } from '../ledger/reconcile-lease.ts';
import type { Logger } from '../logger.ts';
import { Corrections } from '../notifications/corrections.ts';
import { blazarSection, keystoneSection } from '../openstack/options.ts';
import type { FollowerMetrics } from './follower-metrics.ts';

/** The part of a generation that a round needs. It stays open until the round has ended. */
export interface Followable {
  readonly configuration: Configuration;
  readonly enforcement: UsageEnforcement;
  enter(): void;
  leave(): void;
}

export interface FollowerParts {
  /** The configuration that decides now. */
  readonly current: () => Followable;
  readonly metrics: FollowerMetrics;
  readonly logger: Logger;
}

/** Replicas that start together must not ask together. */
const JITTER = 0.1;
/** The longest that the first round waits, in seconds. */
const FIRST = 5;
/** Ledger and process have different clocks, and a timer may be early, in seconds. */
const EARLY = 0.9;

export class Follower {
  readonly #parts: FollowerParts;
  readonly #holder = `${hostname()}/${process.pid}/${randomUUID()}`;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #stopping = new AbortController();
  #isClosed = false;
  /** When another process has done it: how long until it is due, in seconds. */
  #due: number | undefined;
  /** What was in doubt when it was last logged. */
  #said = '';
  /** The leases of the round that could not be compared, and the first reason. */
  #failures = { count: 0, error: '' };
  /** The first reason when it was last logged. */
  #complained = '';

  constructor(parts: FollowerParts) {
    this.#parts = parts;
  }

  /** Also after a reload: a round that runs goes on with what it has begun with. */
  start(): void {
    clearTimeout(this.#timer);
    const interval = this.#interval();
    this.#parts.metrics.following(interval !== undefined);
    if (this.#running === undefined && interval !== undefined) {
      this.#schedule(Math.min(interval, FIRST) * Math.random());
    }
  }

  /** Ends the round that runs, if one does: what it has changed stays. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#stopping.abort(new Error('the service stops'));
    await this.#running;
  }

  /** In seconds; `undefined` = Blazar is not followed. */
  #interval(): number | undefined {
    const { configuration, enforcement } = this.#parts.current();
    const { reconcile_interval: interval } = sectionOf(configuration, blazarSection);
    const isActive =
      interval > 0 &&
      enforcement.keystone !== undefined &&
      enforcement.ledger !== undefined &&
      enforcement.claimants.length > 0;
    return isActive && !this.#isClosed ? interval : undefined;
  }

  #schedule(seconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#running = this.#round()
        .catch((thrown: unknown) => this.#failed(thrown, 0))
        .finally(() => {
          this.#running = undefined;
          const interval = this.#interval();
          if (interval !== undefined) {
            const due = this.#due ?? interval;
            this.#due = undefined;
            this.#schedule(due * (1 + JITTER * (2 * Math.random() - 1)));
          }
        });
    }, seconds * 1000);
    // Other things keep the service alive.
    this.#timer.unref();
  }

  async #round(): Promise<void> {
    const { metrics, logger, current } = this.#parts;
    const interval = this.#interval();
    if (interval === undefined) {
      return;
    }
    const generation = current();
    generation.enter();
    this.#failures = { count: 0, error: '' };
    const corrections = new Corrections();
    const who = 'blazar-enforcement';
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1000;
    try {
      const { follow } = await import('../openstack/follow.ts');
      const { configuration, enforcement } = generation;
      const { keystone, ledger: chain, claimants } = enforcement;
      if (keystone === undefined || chain === undefined) {
        return;
      }
      const { endpoint, reconcile_grace: grace } = sectionOf(configuration, blazarSection);
      const { region_name: region } = sectionOf(configuration, keystoneSection);
      const exemptProjects = await enforcement.exemptProjectIds();
      const followed = await chain.read((ledger) =>
        follow({
          ...{ ledger, keystone, endpoint, region, claimants, grace },
          exemptProjects,
          isDryRun: false,
          holder: this.#holder,
          every: interval * EARLY,
          who,
          reason: null,
          signal: this.#stopping.signal,
          report: (one) => {
            corrections.add(one);
            this.#report(one);
          },
        }),
      );
      if (followed.kind !== 'done') {
        metrics.round('elsewhere', seconds());
        if (followed.kind === 'early') {
          metrics.completed(Number(followed.followedAt / 1000n));
          this.#due = Math.min(interval, followed.seconds + interval * (1 - EARLY) * 2);
        }
        return;
      }
      const { doubts, listed } = followed;
      metrics.listed(listed);
      metrics.round(doubts.length === 0 ? 'complete' : 'doubtful', seconds());
      if (doubts.length === 0) {
        metrics.completed(Date.now());
      }
      this.#say(doubts);
      this.#complain();
      logger.debug({ seconds: seconds(), listed, doubts }, 'compared the ledger with Blazar');
    } catch (thrown) {
      if (!this.#isClosed) {
        this.#failed(thrown, seconds());
      }
    } finally {
      // Also when the round failed half way: what was done before stays done.
      const at = new Date();
      await generation.enforcement.notifications?.corrected({ who, reason: null, at, corrections });
      generation.leave();
    }
  }

  #report(one: Reconciled): void {
    const { metrics, logger } = this.#parts;
    const { outcome, row, leaseId, projectId, userId, note } = one;
    if (one.isFailure === true) {
      const { count, error } = this.#failures;
      this.#failures = { count: count + 1, error: error || (note ?? '') };
    }
    if (outcome === 'left') {
      return;
    }
    metrics.changed(outcome);
    logger.info(
      { outcome, lease_id: leaseId, row: String(row), project_id: projectId, user_id: userId, reason: note },
      'the ledger was corrected: Blazar has it differently',
    );
  }

  /** Once, until it changes. */
  #say(doubts: readonly string[]): void {
    const said = doubts.join('; ');
    if (said !== this.#said && said !== '') {
      this.#parts.logger.warn(
        { doubts },
        'no lease of the ledger is released: the list of Blazar is in doubt',
      );
    }
    this.#said = said;
  }

  /** Once for each reason: such a lease stays as it was, and is tried in every round. */
  #complain(): void {
    const { count, error } = this.#failures;
    if (count > 0 && error !== this.#complained) {
      this.#parts.logger.error(
        { leases: count, error },
        'leases stay as they were: they could not be compared with Blazar',
      );
    }
    this.#complained = error;
  }

  #failed(thrown: unknown, seconds: number): void {
    this.#parts.metrics.round('failed', seconds);
    this.#parts.logger.error({ error: errorText(thrown) }, 'the ledger could not be compared with Blazar');
  }
}
