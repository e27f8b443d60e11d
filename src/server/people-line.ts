import { Admission } from '../admission.ts';
import { type Deadline, withinDeadline } from '../deadline.ts';
import type { Generation } from './generation.ts';

/** How many people are answered at the same time, and how many wait: whoever asks for a lease waits for none of them. */
const MAX_UNDER_WAY = 32;
const MAX_WAITING = 256;

/** The line of all who use the API or the console. */
export class PeopleLine {
  readonly #admission = new Admission(MAX_UNDER_WAY, MAX_WAITING);

  /** Runs `work` when it is its turn, within the deadline of the service, waiting included. @throws OverloadedError */
  run<Result>({ options }: Generation, work: (deadline: Deadline) => Promise<Result>): Promise<Result> {
    return withinDeadline(options.deadline, async (deadline) => {
      await this.#admission.enter(deadline);
      try {
        return await work(deadline);
      } finally {
        this.#admission.leave();
      }
    });
  }
}
