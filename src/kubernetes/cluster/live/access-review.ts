/**
 * SubjectAccessReviews: whether an account may use a policy, by all authorizers of the cluster. Source:
 * Kubernetes API, authorization.k8s.io/v1; tried on kube-apiserver 1.20.
 */
import { z } from 'zod';
import { type Account, RESOURCE, SourceUnavailableError, VERB } from '../../policies/access.ts';
import { CLUSTER_GROUP } from '../../policies/policy.ts';
import { bounded } from '../api/connections.ts';
import { type ApiClient, ApiError, ApiUnreachableError } from '../api/contract.ts';

export const REVIEWS_PATH = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

/** The name that stands for all policies. Source: Kubernetes API, ResourceAttributes. */
export const ALL_POLICIES = '';

export type ReviewOutcome = 'allowed' | 'denied' | 'failed';

/** Counts reviews and answers. Its methods must not throw. */
export interface ReviewObserver {
  /** A review has ended. `failed` = no answer, or an unreadable one. */
  reviewed(outcome: ReviewOutcome, seconds: number): void;
  /** A question was answered: `cached` = without waiting for the API server. */
  answered(how: 'cached' | 'asked' | 'failed'): void;
}

/** The part that is read. The API server repeats the request, which must be ours. */
const reviewSchema = z.object({
  kind: z.literal('SubjectAccessReview'),
  spec: z.object({
    user: z.string().nullish(),
    resourceAttributes: z.object({ name: z.string().nullish() }),
  }),
  status: z.object({
    allowed: z.boolean(),
    denied: z.boolean().nullish(),
    evaluationError: z.string().nullish(),
  }),
});

export class AccessReviews {
  readonly #client: ApiClient;
  readonly #observer: ReviewObserver | undefined;

  constructor(client: ApiClient, observer?: ReviewObserver) {
    this.#client = client;
    this.#observer = observer;
  }

  /** Whether the account may use the policy of this name. @throws SourceUnavailableError if there is no answer */
  async mayUse(account: Account, name: string, signal?: AbortSignal): Promise<boolean> {
    const sentAt = performance.now();
    let outcome: ReviewOutcome = 'failed';
    try {
      const answer = await this.#client.request({
        method: 'POST',
        path: REVIEWS_PATH,
        body: reviewOf(account, name),
        ...(signal !== undefined && { signal }),
      });
      const { allowed, denied, evaluationError } = statusIn(answer, account, name);
      if (!allowed && evaluationError) {
        // As a no, it would leave out what the policy requires. RBAC reports a missing role as a reason instead.
        throw new UnreadableReviewError(`an authorizer failed: ${bounded(evaluationError)}`);
      }
      outcome = allowed && denied !== true ? 'allowed' : 'denied';
      return outcome === 'allowed';
    } catch (error) {
      throw this.#unavailable(account, error);
    } finally {
      if (outcome !== 'failed' || !(signal?.reason instanceof AbandonedReviewError)) {
        this.#observer?.reviewed(outcome, (performance.now() - sentAt) / 1000);
      }
    }
  }

  #unavailable({ user }: Account, cause: unknown): SourceUnavailableError {
    const why =
      cause instanceof ApiError
        ? `${cause.status} ${cause.reason}: ${cause.message}`
        : cause instanceof ApiUnreachableError || cause instanceof UnreadableReviewError
          ? cause.message
          : 'the review failed';
    return new SourceUnavailableError(
      `${this.#client.server} does not say which scheduling policies ${user} may use: ${why}`,
      { cause },
    );
  }
}

/** No caller waits for the answer any more: not a failure of the API server. */
export class AbandonedReviewError extends Error {
  override readonly name = 'AbandonedReviewError';
}

/** The answer is not from an API server, or not to this request, or it does not say yes or no. */
class UnreadableReviewError extends Error {
  override readonly name = 'UnreadableReviewError';
}

function reviewOf({ user, groups, namespace }: Account, name: string): object {
  return {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user,
      groups,
      resourceAttributes: {
        verb: VERB,
        group: CLUSTER_GROUP,
        resource: RESOURCE,
        name,
        ...(namespace !== undefined && { namespace }),
      },
    },
  };
}

function statusIn(answer: unknown, { user }: Account, name: string) {
  const read = reviewSchema.safeParse(answer);
  if (!read.success) {
    throw new UnreadableReviewError('the answer is not a SubjectAccessReview', { cause: read.error });
  }
  const { spec, status } = read.data;
  if ((spec.user ?? '') !== user || (spec.resourceAttributes.name ?? ALL_POLICIES) !== name) {
    throw new UnreadableReviewError('the answer is for another SubjectAccessReview');
  }
  return status;
}

/** One set of reviews: those to start, and the number of running ones. */
interface ReviewSet {
  startNext(): Promise<void>;
  running: number;
}

/** Serves sets in the order of arrival, so that the first ones finish in time even under overload. */
export class ReviewLine {
  readonly #each: number;
  readonly #sets = new Set<ReviewSet>();
  #free: number;

  /** Maximum of concurrent reviews, in total and per set. */
  constructor({ total = 64, each = 16 }: { readonly total?: number; readonly each?: number } = {}) {
    this.#free = total;
    this.#each = each;
  }

  /**
   * Calls `ask` for every item, such as a name, and resolves to the answers. Rejects at the first failure,
   * and when the signal fires; then no more are started. Running calls keep their slot until they end: `ask`
   * must respect the signal too.
   */
  all<Item, Answer>(
    names: readonly Item[],
    ask: (name: Item) => Promise<Answer>,
    signal: AbortSignal,
  ): Promise<Answer[]> {
    if (names.length === 0) {
      return Promise.resolve([]);
    }
    return new Promise((resolve, reject) => {
      const answers: Answer[] = [];
      const left = [...names.entries()].reverse();
      let answered = 0;
      const leave = () => {
        signal.removeEventListener('abort', giveUp);
        this.#sets.delete(set);
      };
      const giveUp = () => {
        leave();
        reject(signal.reason);
      };
      const startNext = async () => {
        const next = left.pop();
        if (left.length === 0) {
          this.#sets.delete(set);
        }
        if (next === undefined) {
          return;
        }
        try {
          answers[next[0]] = await ask(next[1]);
          answered += 1;
        } catch (error) {
          leave();
          reject(error);
        }
        if (answered === names.length) {
          leave();
          resolve(answers);
        }
      };
      const set: ReviewSet = { startNext, running: 0 };
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      signal.addEventListener('abort', giveUp, { once: true });
      this.#sets.add(set);
      this.#fill();
    });
  }

  #fill(): void {
    for (const set of this.#sets) {
      while (this.#free > 0 && set.running < this.#each && this.#sets.has(set)) {
        this.#free -= 1;
        set.running += 1;
        void set.startNext().finally(() => {
          this.#free += 1;
          set.running -= 1;
          this.#fill();
        });
      }
      if (this.#free === 0) {
        return;
      }
    }
  }
}
