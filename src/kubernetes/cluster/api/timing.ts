/** Time: how long a call may take, pauses after failures, and clocks. */
import { setMaxListeners } from 'node:events';
import { uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../../../base/errors.ts';
import type { ApiClient, ApiRequest } from './contract.ts';

/** Until its time is over, or one of those who wait for the call gives up. */
export class CallTime {
  readonly #controller = new AbortController();
  readonly #signals: readonly AbortSignal[];
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #end: number;
  /** Why it is over; `undefined` = it is not. */
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
      // One signal may serve many calls; Node would warn of a leak at more than ten listeners.
      setMaxListeners(0, signal);
      signal.addEventListener('abort', this.#heard, { once: true });
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** What the work resolves to, unless the time is over before; the work goes on. */
  async within<Result>(work: Result | Promise<Result>): Promise<Result> {
    this.signal.throwIfAborted();
    return new Promise<Result>((resolve, reject) => {
      this.signal.addEventListener('abort', () => reject(this.signal.reason), { once: true });
      Promise.resolve(work).then(resolve, reject);
    });
  }

  /** Resolves to false, at once, if that would take longer than there is time; rejects if it is over meanwhile. */
  async pause(milliseconds: number): Promise<boolean> {
    if (performance.now() + milliseconds >= this.#end) {
      return false;
    }
    await sleep(milliseconds, undefined, { signal: this.signal }).catch(() => undefined);
    this.signal.throwIfAborted();
    return true;
  }

  /** Frees timer and listeners; with a reason it also ends what still runs. */
  end(reason?: string): void {
    clearTimeout(this.#timer);
    for (const signal of this.#signals) {
      signal.removeEventListener('abort', this.#heard);
    }
    if (reason !== undefined) {
      this.#controller.abort(new Error(reason));
    }
  }

  readonly #heard = (event: Event): void => {
    this.#abort(errorText((event.target as AbortSignal).reason));
  };

  #abort(why: string): void {
    this.over ??= why;
    this.#controller.abort(new Error(why));
  }
}

/** In milliseconds: nothing here is worth waiting longer for. */
const CALL_MS = 5000;

/** One call that ends soon, and at once with `closing`. */
export async function boundedCall(
  client: ApiClient,
  request: ApiRequest,
  closing: AbortSignal,
): Promise<unknown> {
  closing.throwIfAborted();
  // Not `AbortSignal.any`, with which `closing` would remember every call for as long as the service runs.
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

/** Keeps no process alive. */
export const CLOCK: Clock = {
  now: () => performance.now(),
  sleep: (milliseconds, signal) =>
    sleep(milliseconds, undefined, { signal, ref: false }).catch(() => undefined),
};

/** Pauses after failures in a row: longer each time, and each of random length, so that replicas do not call all at once. */
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

  /** The next pause: between the shortest and twice the one before at most. */
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
  /** Milliseconds that never jump, without suspensions. Default: `performance.now` */
  readonly awake?: () => number;
  /** Milliseconds since the machine was started, with suspensions. Default: `os.uptime` */
  readonly sinceBoot?: () => number;
}

/** A suspension moves the wall clock. Reading the time since boot costs a hundred times as much, so it is read only then. */
const JUMP_MS = 500;

/**
 * Milliseconds that never go back, also while the machine was suspended: then `performance.now()` stands still on Linux, and the cluster
 * does not. Whoever sets the wall clock changes nothing.
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

/** Milliseconds of this process's clock. For what is compared with other machines: how old an answer of the cluster is. */
export function elapsed(): number {
  return clock.now();
}
