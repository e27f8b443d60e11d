/** Pace of delivery, and pauses after failures. */
import { outsideTraces } from '../../base/tracing.ts';

/** Times in milliseconds. */
export interface Backoff {
  /** After the first failure; doubled with each further one. */
  readonly firstPause: number;
  readonly longestPause: number;
  /** Interval of checking the outbox for messages of other processes. */
  readonly poll: number;
  /** A worker that has not renewed its claims for this long is considered gone, and others take them over. */
  readonly claim: number;
  /** Concurrent deliveries to a service; one while it fails. */
  readonly atOnce: number;
}

export const BACKOFF: Backoff = {
  firstPause: 1000,
  longestPause: 300_000,
  poll: 1000,
  claim: 15_000,
  atOnce: 4,
};

/** Limit of a service's `Retry-After`, in milliseconds. */
const LONGEST_RETRY_AFTER = 3_600_000;

/** Milliseconds after the nth failure, from 1: doubled each time, with jitter, so that retries spread out. */
export function pauseAfter(failures: number, { firstPause, longestPause }: Backoff): number {
  const full = Math.min(firstPause * 2 ** Math.min(failures - 1, 40), longestPause);
  return full * (0.5 + Math.random() / 2);
}

export class ServicePauses {
  readonly #backoff: Backoff;
  #failures = 0;
  /** Number of consecutive pauses, and the end of the current one, by `performance.now()`. */
  #pauses = 0;
  #until = 0;
  /** End of a pause that the service requested; late responses do not end it. */
  #askedUntil = 0;

  constructor(backoff: Backoff) {
    this.#backoff = backoff;
  }

  /** Rest of the current pause, in milliseconds; 0 = no pause. */
  get left(): number {
    return Math.max(0, this.#until - performance.now());
  }

  get failures(): number {
    return this.#failures;
  }

  /** Whether no delivery succeeded since the last failure. */
  get isFailing(): boolean {
    return this.#failures > 0 || this.#pauses > 0;
  }

  failed(): void {
    this.#failures += 1;
  }

  /** Returns whether the service was paused until now. */
  served(): boolean {
    if (performance.now() < this.#askedUntil) {
      return false;
    }
    const wasPaused = this.#pauses > 0;
    this.#failures = 0;
    this.#pauses = 0;
    this.#until = 0;
    return wasPaused;
  }

  /**
   * `retryAfter`: in seconds, if the service sent it. Returns the number of consecutive pauses;
   * `undefined` = a pause is already running.
   */
  begin(retryAfter: number | undefined): number | undefined {
    if (this.left > 0 && retryAfter === undefined) {
      // From a concurrent attempt.
      return undefined;
    }
    this.#pauses += 1;
    const asked = Math.min((retryAfter ?? 0) * 1000, LONGEST_RETRY_AFTER);
    const pause = Math.max(pauseAfter(this.#pauses, this.#backoff), asked);
    this.#until = Math.max(this.#until, performance.now() + pause);
    if (retryAfter !== undefined) {
      this.#askedUntil = this.#until;
    }
    return this.#pauses;
  }
}

/** A pause that can be ended, even before it begins. */
export class Pause {
  #isOver = false;
  #end: (() => void) | undefined;

  /** Resolves after this time, or at `end`. */
  async take(milliseconds: number): Promise<void> {
    if (this.#isOver || milliseconds <= 0) {
      // Yields to the event loop.
      await new Promise((resolve) => setImmediate(resolve));
    } else {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, milliseconds);
        this.#end = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#end = undefined;
    }
    this.#isOver = false;
  }

  end(): void {
    this.#isOver = true;
    this.#end?.();
  }
}

export class ClaimRenewal {
  readonly #every: number;
  readonly #keep: (ids: readonly bigint[]) => Promise<void>;
  readonly #ids = new Set<bigint>();
  #timer: NodeJS.Timeout | undefined;

  /** `every`: in milliseconds. A failed `keep` is retried: the lease is refused if its claim is lost. */
  constructor(every: number, keep: (ids: readonly bigint[]) => Promise<void>) {
    this.#every = every;
    this.#keep = keep;
  }

  add(id: bigint): void {
    this.#ids.add(id);
    this.#timer ??= setTimeout(() => this.#renew(), this.#every);
  }

  delete(id: bigint): void {
    this.#ids.delete(id);
    if (this.#ids.size === 0) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
  }

  #renew(): void {
    this.#timer = setTimeout(() => this.#renew(), this.#every);
    outsideTraces(() => this.#keep([...this.#ids])).catch(() => {});
  }
}
