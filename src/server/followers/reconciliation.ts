/** Reconciles the ledger with another system, one round at a time, with the current configuration. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { ReconciliationResult } from '../../ledger/reconciliation/leader-lease.ts';
import type { ReconciliationMetrics } from '../metrics/reconciliation-metrics.ts';

/** The part of a generation that rounds need. It stays open until the round has ended. */
export interface Held {
  enter(): void;
  leave(): void;
}

export interface ReconciliationTerms<Generation extends Held> {
  readonly generation: Generation;
  /** A unique id of the process. */
  readonly holder: string;
  /** Skip if another process has reconciled less than this many seconds ago. */
  readonly every: number;
  /** Fires when the service stops. */
  readonly signal: AbortSignal;
}

interface ReconciliationLines {
  readonly done: string;
  /** Logged with `doubts`; once, until they change. */
  readonly doubtful: string;
  /** Logged with `error`; once, until it changes. */
  readonly failed: string;
}

export interface ReconcilerParts<Generation extends Held, Metrics extends ReconciliationMetrics<string>> {
  readonly current: () => Generation;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Relative jitter: replicas that start together must not send requests together. */
const JITTER = 0.1;
/** Maximum delay of the first round, in seconds. */
const FIRST = 5;
/** Maximum delay after a failed round, in seconds. */
const RETRY = 60;
/** Tolerates differences between the clocks of ledger and process, and early timers. */
const EARLY = 0.9;

export abstract class Reconciler<
  Generation extends Held,
  Metrics extends ReconciliationMetrics<string> = ReconciliationMetrics<string>,
> {
  protected readonly metrics: Metrics;
  protected readonly logger: Logger;
  protected abstract readonly lines: ReconciliationLines;
  readonly #current: () => Generation;
  readonly #holder = `${hostname()}/${process.pid}/${randomUUID()}`;
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  /** Seconds until the next round, if it is due before the interval ends. */
  #due: number | undefined;
  /** Whether the configuration was reloaded during the current round. */
  #isReloaded = false;
  /** The last logged doubts and error, which are not logged again until they change. */
  #doubts = '';
  #failure = '';

  constructor({ current, metrics, logger }: ReconcilerParts<Generation, Metrics>) {
    this.#current = current;
    this.metrics = metrics;
    this.logger = logger;
  }

  /** In seconds; `undefined` = no rounds with this configuration. */
  protected abstract intervalOf(generation: Generation): number | undefined;

  /** Resolves to `undefined` if there is nothing to do. Errors are logged. */
  protected abstract round(terms: ReconciliationTerms<Generation>): Promise<ReconciliationResult | undefined>;

  /** Call it also after a reload: a running round keeps its configuration. */
  start(): void {
    clearTimeout(this.#timer);
    const interval = this.#interval();
    this.metrics.following(interval !== undefined);
    this.#isReloaded = this.#running !== undefined;
    if (this.#running === undefined && interval !== undefined) {
      this.#schedule(Math.min(interval, FIRST) * Math.random());
    }
  }

  /** Stops the running round: its changes stay. */
  async close(): Promise<void> {
    this.#stopping.abort(new Error('the service stops'));
    clearTimeout(this.#timer);
    await this.#running;
  }

  #interval(generation = this.#current()): number | undefined {
    return this.#stopping.signal.aborted ? undefined : this.intervalOf(generation);
  }

  #schedule(seconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#running = this.#runRound().finally(() => {
        this.#running = undefined;
        const interval = this.#interval();
        if (interval !== undefined) {
          // Shorter if a reload has changed it.
          const due = Math.min(this.#due ?? interval, interval, this.#isReloaded ? FIRST : interval);
          this.#isReloaded = false;
          this.#schedule(due * (1 + JITTER * (2 * Math.random() - 1)));
        }
      });
    }, seconds * 1000);
    // The timer alone must not keep the process alive.
    this.#timer.unref();
  }

  /** Never rejects. */
  async #runRound(): Promise<void> {
    const generation = this.#current();
    const interval = this.#interval(generation);
    this.#due = undefined;
    if (interval === undefined) {
      return;
    }
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1000;
    generation.enter();
    try {
      const holder = this.#holder;
      const every = interval * EARLY;
      const { signal } = this.#stopping;
      const result = await this.round({ generation, holder, every, signal });
      if (result !== undefined) {
        this.#done(result, interval, seconds());
      }
    } catch (thrown) {
      if (!this.#stopping.signal.aborted) {
        this.#failed(thrown, seconds());
      }
    } finally {
      generation.leave();
    }
  }

  #done(result: ReconciliationResult, interval: number, seconds: number): void {
    const { metrics, logger, lines } = this;
    if (result.kind !== 'done') {
      metrics.round('elsewhere', seconds);
      if (result.kind === 'early') {
        metrics.completed(result.age);
        this.#due = Math.min(interval, result.seconds + interval * (1 - EARLY) * 2);
      }
      return;
    }
    const { listed, doubts } = result;
    this.#failure = '';
    metrics.listed(listed);
    metrics.round(doubts.length === 0 ? 'complete' : 'doubtful', seconds);
    if (doubts.length === 0) {
      metrics.completed(0);
    }
    const said = doubts.join('; ');
    if (said !== this.#doubts && said !== '') {
      logger.warn({ doubts }, lines.doubtful);
    }
    this.#doubts = said;
    logger.debug({ seconds, listed, doubts }, lines.done);
  }

  /** The ledger is unchanged. */
  #failed(thrown: unknown, seconds: number): void {
    const { metrics, logger, lines } = this;
    metrics.round('failed', seconds);
    this.#due = RETRY;
    const error = errorText(thrown);
    if (error !== this.#failure) {
      logger.error({ error }, lines.failed);
    }
    this.#failure = error;
  }
}
