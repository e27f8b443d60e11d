/** When to write again after a write that failed. */
import { ApiError } from '../api/contract.ts';
import type { StatusOutcome } from './contract.ts';

/** After a fault of the API server, in milliseconds; doubled with each further one. */
const FIRST_MS = 1000;
const LONGEST_MS = 30_000;
/** What only an administrator can mend, in milliseconds. */
const MENDED_MS = 60_000;
/** One policy may be deleted while its status is written. Many at once have no status. */
const MANY_GONE = 3;

export interface Failure {
  readonly outcome: StatusOutcome;
  /** When this policy may be tried again. */
  readonly againAt: number;
  /** What an operator must know; `undefined` = nothing. */
  readonly hint: string | undefined;
}

export class WritePace {
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #faults = 0;
  #gone = 0;

  /** Nothing may be written before. */
  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  succeeded(): void {
    this.#faults = 0;
    this.#gone = 0;
  }

  failed(error: unknown, now: number): Failure {
    const againAt = now + MENDED_MS;
    switch (error instanceof ApiError ? error.status : undefined) {
      case 409:
        // The watch tells of the state that we did not know. This is only for one that does not.
        return { outcome: 'conflict', againAt, hint: undefined };
      case 404:
        this.#gone += 1;
        if (this.#gone < MANY_GONE) {
          return { outcome: 'gone', againAt, hint: undefined };
        }
        this.#pausedUntil = againAt;
        return { outcome: 'gone', againAt, hint: 'apply the CustomResourceDefinition of this version' };
      case 403:
        this.#pausedUntil = againAt;
        return { outcome: 'refused', againAt, hint: 'grant patch on schedulingpolicies/status' };
      case 400:
      case 415:
      case 422:
        return { outcome: 'refused', againAt, hint: 'the API server finds it invalid' };
      default: {
        const backoff = Math.min(FIRST_MS * 2 ** this.#faults, LONGEST_MS);
        this.#faults += 1;
        this.#pausedUntil = now + backoff * (1 + Math.random() / 5);
        return { outcome: 'failed', againAt: this.#pausedUntil, hint: undefined };
      }
    }
  }
}
