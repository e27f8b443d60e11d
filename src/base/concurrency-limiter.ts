/** Limits how much runs at the same time. */
import type { Wait } from './deadline.ts';

/** No capacity, or none before the deadline: answered with 503, to be retried. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
}

/** A first-in, first-out queue for capacity. Waiting too long ends in an error. */
export class WaitQueue {
  readonly #waiting = new Set<() => void>();

  get length(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves on admission. If the wait ends first, it rejects: with an `OverloadedError` of this message, or,
   * without a message, with the reason of the wait.
   */
  join(wait: Wait, message?: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const { signal } = wait;
      const reason = () => (message === undefined ? signal?.reason : new OverloadedError(message));
      if (signal?.aborted) {
        // Already fired.
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

  /** Admits the first waiter. Returns whether there was one. */
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
 * Limits how many decisions, for example, run at the same time, and how many are queued. Not cockatiel's
 * bulkhead: it keeps requests queued after their deadline, and refuses others because of them.
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

  /**
   * Returns `undefined` if there is capacity now. Call `leave` once per entry.
   * @throws OverloadedError now, or when the wait ends
   */
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
    // The slot goes to the longest waiter.
    if (!this.#queue.letIn()) {
      this.#underWay -= 1;
    }
  }
}

/** Limits the number of concurrent callers; all others wait in order of arrival. */
export class Semaphore {
  /** May change while callers wait; those inside stay. */
  limit: number;
  #inside = 0;
  readonly #line = new WaitQueue();

  constructor(limit: number) {
    this.limit = limit;
  }

  get isEmpty(): boolean {
    return this.#inside === 0 && this.#line.length === 0;
  }

  /**
   * Resolves to a function that leaves; call it once. Rejects with the reason of the wait if that ends first.
   */
  async enter(wait: Wait): Promise<() => void> {
    wait.throwIfOver();
    if (this.#inside >= this.limit || this.#line.length > 0) {
      await this.#line.join(wait);
    } else {
      this.#inside += 1;
    }
    return () => {
      this.#inside -= 1;
      this.open();
    };
  }

  /** Admits as many callers as the limit allows. To be called after raising the limit. */
  open(): void {
    while (this.#inside < this.limit && this.#line.letIn()) {
      this.#inside += 1;
    }
  }
}
