import { ConcurrencyLimiter, OverloadedError } from '../../base/concurrency-limiter.ts';
import { type Deadline, NoAnswerError, type Wait, withinDeadline } from '../../base/deadline.ts';
import { ApiError, RETRY_AFTER } from '../api/route.ts';
import type { Generation } from '../configuration/generation.ts';
import type { Caller } from './caller.ts';

/** Concurrent and queued requests of users. Lease requests do not wait for them. */
const MAX_UNDER_WAY = 32;
const MAX_WAITING = 256;
/** Maximum per identity, across sessions, including queued ones: one user cannot starve the others. */
const MAX_OF_ONE = 16;
/** Queue of an operator or reader, since many may share a token. A member's further requests are refused. */
const MAX_WAITING_OF_ONE = 256;
/** Maximum concurrent estimates: they must leave room for other requests. */
const MAX_ESTIMATES = 8;
/** Maximum concurrent estimates of a member: one takes as long as a thousand decisions. */
const MAX_ESTIMATES_OF_MEMBER = 2;

interface Own {
  readonly requests: ConcurrencyLimiter;
  readonly estimates: ConcurrencyLimiter;
}

export class UserLimiter {
  readonly #limiter = new ConcurrencyLimiter(MAX_UNDER_WAY, MAX_WAITING);
  readonly #estimates = new ConcurrencyLimiter(MAX_ESTIMATES, MAX_WAITING);
  readonly #ofOne = new Map<string, Own>();

  /**
   * Runs `work` when there is room, within the deadline of the service, including the time in the queue.
   * Rejects with an `ApiError` of status 429 for a member with too many open requests.
   *
   * @throws OverloadedError
   */
  run<Result>(
    { options }: Pick<Generation, 'options'>,
    caller: Caller,
    work: (deadline: Deadline) => Promise<Result>,
    { isEstimate = false } = {},
  ): Promise<Result> {
    return withinDeadline(options.deadline, async (deadline) => {
      const answer = () => work(deadline).catch(triedAgain);
      if (caller.provenBy === 'nobody') {
        // May be any number of users.
        return withLimiters([...(isEstimate ? [this.#estimates] : []), this.#limiter], deadline, answer);
      }
      const { identity, kind } = caller;
      const own = this.#ownOf(caller);
      const estimates = isEstimate ? [...(kind === 'member' ? [own.estimates] : []), this.#estimates] : [];
      try {
        return await withLimiters([own.requests, ...estimates, this.#limiter], deadline, answer);
      } finally {
        if (own.requests.underWay === 0) {
          this.#ofOne.delete(identity);
        }
      }
    });
  }

  #ownOf({ identity, kind, provenBy }: Caller): Own {
    const own = this.#ofOne.get(identity) ?? {
      requests: new ConcurrencyLimiter(MAX_OF_ONE, MAX_WAITING_OF_ONE),
      estimates: new ConcurrencyLimiter(MAX_ESTIMATES_OF_MEMBER, MAX_OF_ONE),
    };
    const { underWay, queued } = own.requests;
    if (kind === 'member' && underWay >= MAX_OF_ONE) {
      const message = 'too many requests of this user at the same time';
      throw new ApiError(429, message, { headers: RETRY_AFTER });
    }
    if (queued >= MAX_WAITING_OF_ONE) {
      const whose = provenBy === 'token' ? 'with this token' : 'of this user';
      throw new OverloadedError(`too many requests ${whose} at the same time`);
    }
    this.#ofOne.set(identity, own);
    return own;
  }
}

/** Runs `work` after entering all limiters, one by one. @throws OverloadedError */
export async function withLimiters<Result>(
  [line, ...others]: readonly ConcurrencyLimiter[],
  wait: Wait,
  work: () => Promise<Result>,
): Promise<Result> {
  if (line === undefined) {
    return work();
  }
  await line.enter(wait);
  try {
    return await withLimiters(others, wait, work);
  } finally {
    line.leave();
  }
}

function triedAgain(thrown: unknown): never {
  throw thrown instanceof NoAnswerError
    ? new OverloadedError('there was no answer in time; please try again', { cause: thrown })
    : thrown;
}
