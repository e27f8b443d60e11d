/** Deadlines of calls, pauses after failures, and clocks. */
import { setMaxListeners } from 'node:events';
import { uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../../../base/errors.ts';
import type { ApiClient, ApiRequest } from './contract.ts';

/** The time of a call: until its deadline, or until one of its signals fires. */
export class CallTime {
  readonly #controller = new AbortController();
  readonly #signals: readonly AbortSignal[];
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #end: number;
  /** Why it has ended; `undefined` = it has not. */
  over: string | undefined;

  /** `milliseconds`: `undefined` = no limit. */
  constructor(milliseconds: number | undefined, signals: readonly (AbortSignal | undefined)[]) {
    this.#end = milliseconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + milliseconds;
    this.#signals = signals.filter((signal) => signal !== undefined);
    if (milliseconds !== undefined) {
      this.#timer = setTimeout(() => this.#abort(`no answer within ${milliseconds / 1000} s`), milliseconds);
    }
    for (const signal of this.#signals) {
      if (signal.aborted) {
        this.#abort(errorText(signal.reason));
      }
      // One signal may serve many calls; above ten listeners Node would warn of a leak.
      setMaxListeners(0, signal);
      signal.addEventListener('abort', this.#aborted, { once: true });
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The result of the work, unless the time ends first; the work goes on. */
  async within<Result>(work: Result | Promise<Result>): Promise<Result> {
    this.signal.throwIfAborted();
    return new Promise<Result>((resolve, reject) => {
      this.signal.addEventListener('abort', () => reject(this.signal.reason), { once: true });
      Promise.resolve(work).then(resolve, reject);
    });
  }

  /** Resolves to false at once if that would take longer than the remaining time; rejects if it ends meanwhile. */
  async pause(milliseconds: number): Promise<boolean> {
    if (performance.now() + milliseconds >= this.#end) {
      return false;
    }
    await sleep(milliseconds, undefined, { signal: this.signal }).catch(() => undefined);
    this.signal.throwIfAborted();
    return true;
  }

  /** Frees timer and listeners; with a reason it also ends work in progress. */
  end(reason?: string): void {
    clearTimeout(this.#timer);
    for (const signal of this.#signals) {
      signal.removeEventListener('abort', this.#aborted);
    }
    if (reason !== undefined) {
      this.#controller.abort(new Error(reason));
    }
  }

  readonly #aborted = (event: Event): void => {
    this.#abort(errorText((event.target as AbortSignal).reason));
  };

  #abort(why: string): void {
    this.over ??= why;
    this.#controller.abort(new Error(why));
  }
}

/** In milliseconds: no call here is worth a longer wait. */
const CALL_MS = 5000;

/** One short call, which ends at once with `closing`. */
export async function boundedCall(
  client: ApiClient,
  request: ApiRequest,
  closing: AbortSignal,
): Promise<unknown> {
  closing.throwIfAborted();
  // Not `AbortSignal.any`: `closing` would keep every call for as long as the service runs.
  const time = new CallTime(CALL_MS, [closing]);
  try {
    return await client.request({ ...request, signal: time.signal });
  } finally {
    time.end();
  }
}

/** A monotonic clock, in milliseconds. */
export interface Clock {
  now(): number;
  /** Ends early, without an error, when `signal` fires. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** Does not keep the process alive. */
export const CLOCK: Clock = {
  now: () => performance.now(),
  sleep: (milliseconds, signal) =>
    sleep(milliseconds, undefined, { signal, ref: false }).catch(() => undefined),
};

/** Pauses after consecutive failures: growing, and randomized, so that replicas do not call at the same time. */
export class Backoff {
  readonly #shortest: number;
  readonly #longest: number;
  #failures = 0;

  /** Milliseconds. */
  constructor(shortest: number, longest: number) {
    this.#shortest = shortest;
    this.#longest = longest;
  }

  reset(): void {
    this.#failures = 0;
  }

  /** The next pause: between the shortest and at most twice the previous one. */
  next(): number {
    this.#failures += 1;
    const ceiling = Math.min(this.#longest, this.#shortest * 2 ** Math.min(this.#failures, 30));
    return this.#shortest + Math.random() * (ceiling - this.#shortest);
  }

  async wait(signal: AbortSignal): Promise<void> {
    await sleep(this.next(), undefined, { signal }).catch(() => undefined);
  }
}

interface ElapsedClocks {
  /** Milliseconds since 1970. Default: `Date.now` */
  readonly wall?: () => number;
  /** Milliseconds without jumps and suspensions. Default: `performance.now` */
  readonly awake?: () => number;
  /** Milliseconds since the machine started, with suspensions. Default: `os.uptime` */
  readonly sinceBoot?: () => number;
}

/**
 * A suspension moves the wall clock. Reading the time since boot costs a hundred times as much: it is read
 * only then.
 */
const JUMP_MS = 500;

/**
 * Milliseconds that never go back, including suspensions of the machine: then `performance.now()` stops on
 * Linux, and the cluster does not. Setting the wall clock has no effect.
 */
export class ElapsedClock {
  readonly #wall: () => number;
  readonly #awake: () => number;
  readonly #sinceBoot: () => number;
  readonly #startedAt: number;
  #ahead: number;
  #suspended = 0;

  constructor({
    wall = Date.now,
    awake = () => performance.now(),
    sinceBoot = () => uptime() * 1000,
  }: ElapsedClocks = {}) {
    this.#wall = wall;
    this.#awake = awake;
    this.#sinceBoot = sinceBoot;
    this.#startedAt = sinceBoot() - awake();
    this.#ahead = wall() - awake();
  }

  now(): number {
    const awake = this.#awake();
    const ahead = this.#wall() - awake;
    if (Math.abs(ahead - this.#ahead) > JUMP_MS) {
      this.#ahead = ahead;
      this.#suspended = Math.max(this.#suspended, this.#sinceBoot() - awake - this.#startedAt);
    }
    return awake + this.#suspended;
  }
}

const clock = new ElapsedClock();

/** Milliseconds of this process's clock. For comparisons with other machines: the age of an answer of the cluster. */
export function elapsed(): number {
  return clock.now();
}
