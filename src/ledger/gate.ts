/** Lets so many through at once; the others wait in their order, as long as they want to. */
import type { Wait } from '../deadline.ts';

export class Gate {
  /** May change while some wait; who is inside stays. */
  limit: number;
  #inside = 0;
  readonly #waiting = new Set<() => void>();

  constructor(limit: number) {
    this.limit = limit;
  }

  get isEmpty(): boolean {
    return this.#inside === 0 && this.#waiting.size === 0;
  }

  /** Resolves to what lets the next one in; to be called once. Rejects with the wait's reason when that is over before. */
  async enter(wait: Wait): Promise<() => void> {
    wait.throwIfOver();
    if (this.#inside >= this.limit || this.#waiting.size > 0) {
      await this.#turn(wait.signal);
    } else {
      this.#inside += 1;
    }
    return () => {
      this.#inside -= 1;
      this.open();
    };
  }

  /** Lets in who may come now. */
  open(): void {
    for (const next of this.#waiting) {
      if (this.#inside >= this.limit) {
        return;
      }
      this.#waiting.delete(next);
      this.#inside += 1;
      next();
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.delete(next);
        reject(signal?.reason);
      };
      const next = () => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#waiting.add(next);
    });
  }
}
