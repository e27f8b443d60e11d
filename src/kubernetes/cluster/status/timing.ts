/** Calls that end soon, and the clock of what is reported. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CallTime } from '../api/call-time.ts';
import type { ApiClient, ApiRequest } from '../api/contract.ts';

/** In milliseconds: nothing here is worth waiting longer for. */
const CALL_MS = 5000;

/** One call that ends soon, and at once with `closing`. */
export async function boundedCall(
  client: ApiClient,
  request: ApiRequest,
  closing: AbortSignal,
  milliseconds: number = CALL_MS,
): Promise<unknown> {
  closing.throwIfAborted();
  // Not `AbortSignal.any`, with which `closing` would remember every call for as long as the service runs.
  const time = new CallTime(milliseconds, [closing]);
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
