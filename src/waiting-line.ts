import type { Wait } from './deadline.ts';

/** There is no room, or none in time: answered with 503, to be tried again. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
}

/** A queue for room, first come first served. Waiting ends in an error when it takes too long. */
export class WaitingLine {
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
