import type { Wait } from '../deadline.ts';
import { OverloadedError, WaitingLine } from '../waiting-line.ts';

/**
 * Lets so many decisions be made at once, and so many wait for their turn. The bulkhead of cockatiel would do, if it did
 * not keep in its queue who can't be served in time any more, and others out.
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

  /** `undefined`: at once. Each entry must be followed by one `leave`. @throws OverloadedError, then or later. */
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
    // The place goes on to who has waited longest.
    if (!this.#line.letIn()) {
      this.#underWay -= 1;
    }
  }
}
