import { Admission } from '../admission.ts';
import { type Deadline, NoAnswerError, withinDeadline } from '../deadline.ts';
import { OverloadedError } from '../waiting-line.ts';
import { ApiError } from './api/route.ts';
import type { Generation } from './generation.ts';
import type { Person } from './people/person.ts';

/** How many people are answered at the same time, and how many wait: whoever asks for a lease waits for none of them. */
const MAX_UNDER_WAY = 32;
const MAX_WAITING = 256;
/** Of one member, waiting included: nobody keeps all others from being answered. Tokens of the configuration may be those of many. */
const MAX_OF_MEMBER = 16;
/** Of them, estimates that are made at the same time: one takes as long as a thousand decisions. */
const MAX_ESTIMATES_OF_MEMBER = 2;
/** In seconds. */
const RETRY_AFTER = '5';

/** What a member has asked for and was not answered yet. */
interface Asked {
  count: number;
  readonly estimates: Admission;
}

/** The line of all who use the API or the console. */
export class PeopleLine {
  readonly #admission = new Admission(MAX_UNDER_WAY, MAX_WAITING);
  /** By their ids: a member with several tokens or sessions is one. */
  readonly #ofMembers = new Map<string, Asked>();

  /**
   * Runs `work` when it is its turn, within the deadline of the service, waiting included. Throws an `ApiError` of status 429 for a member
   * who has asked for too much that was not answered yet. @throws OverloadedError
   */
  async run<Result>(
    { options }: Pick<Generation, 'options'>,
    person: Person,
    work: (deadline: Deadline) => Promise<Result>,
    { isEstimate = false } = {},
  ): Promise<Result> {
    return this.#asMember(person, (estimates) =>
      withinDeadline(options.deadline, (deadline) => {
        const lines =
          isEstimate && estimates !== undefined ? [estimates, this.#admission] : [this.#admission];
        return within(lines, deadline, () => work(deadline).catch(triedAgain));
      }),
    );
  }

  async #asMember<Result>(
    { kind, provenBy, userId }: Person,
    work: (estimates: Admission | undefined) => Promise<Result>,
  ): Promise<Result> {
    if (kind !== 'member' || userId === null) {
      return work(undefined);
    }
    const key = `${provenBy} ${userId}`;
    const asked = this.#ofMembers.get(key) ?? {
      count: 0,
      estimates: new Admission(MAX_ESTIMATES_OF_MEMBER, MAX_OF_MEMBER),
    };
    if (asked.count >= MAX_OF_MEMBER) {
      const headers = { 'Retry-After': RETRY_AFTER };
      throw new ApiError(429, 'too many requests of this user at the same time', { headers });
    }
    asked.count += 1;
    this.#ofMembers.set(key, asked);
    try {
      return await work(asked.estimates);
    } finally {
      asked.count -= 1;
      if (asked.count === 0) {
        this.#ofMembers.delete(key);
      }
    }
  }
}

/** Runs `work` when all of the lines have let it in, one after the other. */
async function within<Result>(
  [line, ...others]: readonly Admission[],
  deadline: Deadline,
  work: () => Promise<Result>,
): Promise<Result> {
  if (line === undefined) {
    return work();
  }
  await line.enter(deadline);
  try {
    return await within(others, deadline, work);
  } finally {
    line.leave();
  }
}

function triedAgain(thrown: unknown): never {
  throw thrown instanceof NoAnswerError
    ? new OverloadedError('there was no answer in time; please try again', { cause: thrown })
    : thrown;
}
