/** A semaphore: limits the number of concurrent callers; the others wait in order of arrival. */

import { WaitQueue } from '../../base/concurrency-limiter.ts';
import type { Wait } from '../../base/deadline.ts';

export class Gate {
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
