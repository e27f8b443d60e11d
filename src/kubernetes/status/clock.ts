import { setTimeout as sleep } from 'node:timers/promises';

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
