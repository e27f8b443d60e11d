import { Admission } from '../admission.ts';
import { type Deadline, withinDeadline } from '../deadline.ts';
import { OverloadedError } from '../waiting-line.ts';
import type { Generation } from './generation.ts';
import type { Person } from './people/person.ts';

/** How many people are answered at the same time, and how many wait: whoever asks for a lease waits for none of them. */
const MAX_UNDER_WAY = 32;
const MAX_WAITING = 256;
/** Of one member, waiting included: nobody keeps all others from being answered. Tokens of the configuration may be those of many. */
const MAX_OF_MEMBER = 16;

/** The line of all who use the API or the console. */
export class PeopleLine {
  readonly #admission = new Admission(MAX_UNDER_WAY, MAX_WAITING);
  /** Requests of members, by their ids. */
  readonly #ofMembers = new Map<string, number>();

  /** Runs `work` when it is its turn, within the deadline of the service, waiting included. @throws OverloadedError */
  async run<Result>(
    { options }: Pick<Generation, 'options'>,
    person: Person,
    work: (deadline: Deadline) => Promise<Result>,
  ): Promise<Result> {
    const leave = this.#enter(person);
    try {
      return await withinDeadline(options.deadline, async (deadline) => {
        await this.#admission.enter(deadline);
        try {
          return await work(deadline);
        } finally {
          this.#admission.leave();
        }
      });
    } finally {
      leave();
    }
  }

  #enter({ kind, provenBy, userId }: Person): () => void {
    if (kind !== 'member' || userId === null) {
      return () => {};
    }
    const key = `${provenBy} ${userId}`;
    const count = this.#ofMembers.get(key) ?? 0;
    if (count >= MAX_OF_MEMBER) {
      throw new OverloadedError('too many requests of this user at the same time');
    }
    this.#ofMembers.set(key, count + 1);
    return () => {
      const left = (this.#ofMembers.get(key) ?? 0) - 1;
      if (left > 0) {
        this.#ofMembers.set(key, left);
      } else {
        this.#ofMembers.delete(key);
      }
    };
  }
}
