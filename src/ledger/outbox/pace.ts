/** How fast messages are delivered, and how long a service is left alone. */

/** Times in milliseconds. */
export interface Pace {
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

export const PACE: Pace = { firstPause: 1000, longestPause: 300_000, poll: 1000, claim: 15_000, atOnce: 4 };

/** A service that asks for a longer rest is asked again after this, in milliseconds. */
const LONGEST_RETRY_AFTER = 3_600_000;

/** Milliseconds after the nth failure, from 1: doubled each time, and random, so that not everything comes back at once. */
export function pauseAfter(failures: number, { firstPause, longestPause }: Pace): number {
  const full = Math.min(firstPause * 2 ** Math.min(failures - 1, 40), longestPause);
  return full * (0.5 + Math.random() / 2);
}

/** The pause of a whole service: at least what it has asked for, in seconds. */
export function servicePause(failures: number, retryAfter: number | undefined, pace: Pace): number {
  return Math.max(pauseAfter(failures, pace), Math.min((retryAfter ?? 0) * 1000, LONGEST_RETRY_AFTER));
}
