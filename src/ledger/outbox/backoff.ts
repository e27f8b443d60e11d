/** How fast messages are delivered, and how long a service is left alone after failures. */
import { outsideTraces } from '../../base/tracing.ts';

/** Times in milliseconds. */
export interface Backoff {
  /** After the first failure; doubled with each further one. */
  readonly firstPause: number;
  readonly longestPause: number;
  /** How often the outbox is looked into for messages of other processes. */
  readonly poll: number;
  /** A worker that does not renew its claims for so long has gone, and others take them over. */
  readonly claim: number;
  /** How many messages are on their way to a service at once; one while it fails. */
  readonly atOnce: number;
}

export const BACKOFF: Backoff = {
  firstPause: 1000,
  longestPause: 300_000,
  poll: 1000,
  claim: 15_000,
  atOnce: 4,
};

/** A service that asks for a longer rest is asked again after this, in milliseconds. */
const LONGEST_RETRY_AFTER = 3_600_000;

/** Milliseconds after the nth failure, from 1: doubled each time, and random, so that not everything comes back at once. */
export function pauseAfter(failures: number, { firstPause, longestPause }: Backoff): number {
  const full = Math.min(firstPause * 2 ** Math.min(failures - 1, 40), longestPause);
  return full * (0.5 + Math.random() / 2);
}

export class ServicePauses {
  readonly #backoff: Backoff;
  #failures = 0;
  /** Pauses in a row, and until when the current one lasts, by `performance.now()`. */
  #pauses = 0;
  #until = 0;
  /** The same, if the service has asked for it: then no answer that arrives late ends the pause. */
  #askedUntil = 0;

  constructor(backoff: Backoff) {
    this.#backoff = backoff;
  }

  /** Of the current pause, in milliseconds; 0 = there is none. */
  get left(): number {
    return Math.max(0, this.#until - performance.now());
  }

  get failures(): number {
    return this.#failures;
  }

  /** It has taken nothing since it last failed. */
  get isFailing(): boolean {
    return this.#failures > 0 || this.#pauses > 0;
  }

  failed(): void {
    this.#failures += 1;
  }

  /** Returns whether it did not take messages until now. */
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
   * `retryAfter`: in seconds, if the service has asked for it. Returns how many pauses there were in a row; `undefined` = there is
   * one already.
   */
  begin(retryAfter: number | undefined): number | undefined {
    if (this.left > 0 && retryAfter === undefined) {
      // Another attempt that was under way at the same time.
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

/** A pause that can be ended, also before it begins. */
export class Pause {
  #isOver = false;
  #end: (() => void) | undefined;

  /** Resolves after so many milliseconds, or at `end`. */
  async take(milliseconds: number): Promise<void> {
    if (this.#isOver || milliseconds <= 0) {
      // Everything else gets its turn.
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

  /** `every`: in milliseconds. A `keep` that fails is tried again: a claim that is lost refuses the lease. */
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
