import { Admission } from '../admission.ts';
import { type Deadline, withinDeadline } from '../deadline.ts';
import { OverloadedError } from '../waiting-line.ts';
import type { Generation } from './generation.ts';
import type { Person } from './people/person.ts';

/** How many people are answered at the same time, and how many wait: whoever asks for a lease waits for none of them. */
const MAX_UNDER_WAY = 32;
const MAX_WAITING = 256;
/** Of one identity, whatever its sessions are; waiting in the line of all is included. Nobody keeps all others from being answered. */
const MAX_OF_ONE = 16;
/** Further requests of one operator or reader wait for their others, since many may share a token. Those of a member are refused. */
const MAX_WAITING_OF_ONE = 256;

/** The line of all who use the API or the console. */
export class PeopleLine {
  readonly #admission = new Admission(MAX_UNDER_WAY, MAX_WAITING);
  /** Of each identity that asks now. */
  readonly #ofOne = new Map<string, Admission>();

  /** Runs `work` when it is its turn, within the deadline of the service, waiting included. @throws OverloadedError */
  run<Result>(
    { options }: Pick<Generation, 'options'>,
    person: Person,
    work: (deadline: Deadline) => Promise<Result>,
  ): Promise<Result> {
    return withinDeadline(options.deadline, (deadline) =>
      this.#amongOwn(person, deadline, async () => {
        await this.#admission.enter(deadline);
        try {
          return await work(deadline);
        } finally {
          this.#admission.leave();
        }
      }),
    );
  }

  async #amongOwn<Result>(
    { identity, kind, provenBy }: Person,
    deadline: Deadline,
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (provenBy === 'nobody') {
      // It may be everybody.
      return work();
    }
    const own = this.#ofOne.get(identity) ?? new Admission(MAX_OF_ONE, MAX_WAITING_OF_ONE);
    if (kind === 'member' ? own.underWay >= MAX_OF_ONE : own.queued >= MAX_WAITING_OF_ONE) {
      const whose = provenBy === 'token' ? 'with this token' : 'of this user';
      throw new OverloadedError(`too many requests ${whose} at the same time`);
    }
    this.#ofOne.set(identity, own);
    await own.enter(deadline);
    try {
      return await work();
    } finally {
      own.leave();
      if (own.underWay === 0) {
        this.#ofOne.delete(identity);
      }
    }
  }
}
