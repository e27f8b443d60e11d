/** Limits how much is done at the same time. */
import type { Wait } from './deadline.ts';

/** There is no room, or none in time: answered with 503, to be tried again. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
}

/** A queue for room, first come first served. Waiting ends in an error when it takes too long. */
export class WaitQueue {
  readonly #waiting = new Set<() => void>();

  get length(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves when it is let in. When the wait ends first it rejects: with an `OverloadedError` of this message, or, without a
   * message, with the reason of the wait.
   */
  join(wait: Wait, message?: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const { signal } = wait;
      const reason = () => (message === undefined ? signal?.reason : new OverloadedError(message));
      if (signal?.aborted) {
        // It has fired already.
        reject(reason());
        return;
      }
      const giveUp = () => {
        this.#waiting.delete(enter);
        reject(reason());
      };
      const enter = () => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      this.#waiting.add(enter);
      signal?.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** Lets the first waiter in. Returns whether there was one. */
  letIn(): boolean {
    const [first] = this.#waiting;
    if (first === undefined) {
      return false;
    }
    this.#waiting.delete(first);
    first();
    return true;
  }
}

/**
 * Limits how much is done at the same time, such as decisions, and how much waits. Not cockatiel's bulkhead: that keeps requests in its queue
 * that cannot be answered in time any more, and refuses others for them.
 */
export class ConcurrencyLimiter {
  readonly #maxConcurrent: number;
  readonly #maxQueued: number;
  readonly #queue = new WaitQueue();
  #underWay = 0;

  constructor(maxConcurrent: number, maxQueued: number) {
    this.#maxConcurrent = maxConcurrent;
    this.#maxQueued = maxQueued;
  }

  get underWay(): number {
    return this.#underWay;
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** Returns `undefined` if there is room at once. Call `leave` once for each entry. @throws OverloadedError now, or when the wait is over */
  enter(wait: Wait): Promise<void> | undefined {
    if (this.#underWay < this.#maxConcurrent) {
      this.#underWay += 1;
      return undefined;
    }
    if (this.#queue.length >= this.#maxQueued) {
      throw new OverloadedError('Too many decisions are under way and waiting. Please try again.');
    }
    return this.#queue.join(wait, 'No decision could be made in time. Please try again.');
  }

  leave(): void {
    // The one that has waited longest gets the place.
    if (!this.#queue.letIn()) {
      this.#underWay -= 1;
    }
  }
}
