/** Compares the ledger with another system again and again, one round after the other, as the current configuration says. */
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
  /** A process, unlike any other. */
  readonly holder: string;
  /** Do nothing if another process has done it less than so many seconds ago. */
  readonly every: number;
  /** Fires when the service stops. */
  readonly signal: AbortSignal;
}

interface ReconciliationLines {
  readonly done: string;
  /** With `doubts`; once, until they change. */
  readonly doubtful: string;
  /** With `error`; once, until it changes. */
  readonly failed: string;
}

export interface ReconcilerParts<Generation extends Held, Metrics extends ReconciliationMetrics<string>> {
  /** The configuration that decides now. */
  readonly current: () => Generation;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Replicas that start together must not ask together. */
const JITTER = 0.1;
/** The longest that the first round waits, in seconds. */
const FIRST = 5;
/** The longest that the next round waits after one that failed, in seconds. */
const RETRY = 60;
/** Ledger and process have different clocks, and a timer may be early. */
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
  /** How long until the next one is due, in seconds, if that is less than the interval. */
  #due: number | undefined;
  /** Whether the configuration has changed since the round that runs began. */
  #isReloaded = false;
  /** What was logged last, which is not logged again until it changes. */
  #doubts = '';
  #failure = '';

  constructor({ current, metrics, logger }: ReconcilerParts<Generation, Metrics>) {
    this.#current = current;
    this.metrics = metrics;
    this.logger = logger;
  }

  /** In seconds; `undefined` = this configuration has no rounds. */
  protected abstract intervalOf(generation: Generation): number | undefined;

  /** Resolves to `undefined` if there is nothing to do. What it throws is logged. */
  protected abstract round(terms: ReconciliationTerms<Generation>): Promise<ReconciliationResult | undefined>;

  /** Also after a reload: a round that runs goes on with what it has begun with. */
  start(): void {
    clearTimeout(this.#timer);
    const interval = this.#interval();
    this.metrics.following(interval !== undefined);
    this.#isReloaded = this.#running !== undefined;
    if (this.#running === undefined && interval !== undefined) {
      this.#schedule(Math.min(interval, FIRST) * Math.random());
    }
  }

  /** Ends the round that runs, if one does: what it has changed stays. */
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
          // Shorter where a reload has made it so meanwhile.
          const due = Math.min(this.#due ?? interval, interval, this.#isReloaded ? FIRST : interval);
          this.#isReloaded = false;
          this.#schedule(due * (1 + JITTER * (2 * Math.random() - 1)));
        }
      });
    }, seconds * 1000);
    // Other things keep the service alive.
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
      const [holder, every, { signal }] = [this.#holder, interval * EARLY, this.#stopping];
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

  /** The ledger stays as it was. */
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
