import type { Wait } from './deadline.ts';

/** There is no room, or none came in time: 503, and try again. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
}

/** Who waits for room, first come first served. Who has waited for too long leaves the line. */
export class WaitingLine {
  readonly #waiting = new Set<() => void>();

  get length(): number {
    return this.#waiting.size;
  }

  /** Resolves when it is let in. Rejects with an `OverloadedError` of this message when the wait is over before. */
  join(wait: Wait, message: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const { signal } = wait;
      if (signal?.aborted) {
        // It will not fire again.
        reject(new OverloadedError(message));
        return;
      }
      const giveUp = () => {
        this.#waiting.delete(enter);
        reject(new OverloadedError(message));
      };
      const enter = () => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      this.#waiting.add(enter);
      signal?.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** Lets the first one in. Returns whether there was one. */
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
