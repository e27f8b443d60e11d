import type { Wait } from './deadline.ts';
import { OverloadedError, WaitingLine } from './waiting-line.ts';

/**
 * Limits how much is done at the same time, such as decisions, and how much waits. Not cockatiel's bulkhead: that keeps requests in its queue
 * that cannot be answered in time any more, and refuses others for them.
 */
export class Admission {
  readonly #maxConcurrent: number;
  readonly #maxQueued: number;
  readonly #line = new WaitingLine();
  #underWay = 0;

  constructor(maxConcurrent: number, maxQueued: number) {
    this.#maxConcurrent = maxConcurrent;
    this.#maxQueued = maxQueued;
  }

  get underWay(): number {
    return this.#underWay;
  }

  get queued(): number {
    return this.#line.length;
  }

  /** Returns `undefined` if there is room at once. Call `leave` once for each entry. @throws OverloadedError now, or when the wait is over */
  enter(wait: Wait): Promise<void> | undefined {
    if (this.#underWay < this.#maxConcurrent) {
      this.#underWay += 1;
      return undefined;
    }
    if (this.#line.length >= this.#maxQueued) {
      throw new OverloadedError('Too many decisions are under way and waiting. Please try again.');
    }
    return this.#line.join(wait, 'No decision could be made in time. Please try again.');
  }

  leave(): void {
    // The one that has waited longest gets the place.
    if (!this.#line.letIn()) {
      this.#underWay -= 1;
    }
  }
}
