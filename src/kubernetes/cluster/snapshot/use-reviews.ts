/** Asks the API server who may use which policy: exact with every authorizer. */

import { WaitQueue } from '../../../base/concurrency-limiter.ts';
import { waitFor } from '../../../base/deadline.ts';
import type { Account } from '../../policies/access.ts';
import type { ApiClient } from '../api/contract.ts';
import { AccessReviews, ALL_POLICIES } from '../live/access-review.ts';

/** An API server limits how many requests of one client it handles at once. */
const AT_ONCE = 8;
const FOREVER = waitFor(undefined);

/** Creates reviews, a few at a time, and counts them. */
export class UseReviews {
  readonly #reviews: AccessReviews;
  readonly #line = new WaitQueue();
  readonly #never = new AbortController().signal;
  #running = 0;
  /** How many were created so far. */
  count = 0;

  constructor(client: ApiClient) {
    this.#reviews = new AccessReviews(client);
  }

  /**
   * `name`: of a policy; `undefined` = all policies. Without a namespace, only cluster-wide rights count.
   * @throws SourceUnavailableError whose cause is what the API server answered
   */
  async mayUse(account: Account, name: string | undefined): Promise<boolean> {
    if (this.#running >= AT_ONCE) {
      await this.#line.join(FOREVER);
    } else {
      this.#running += 1;
    }
    this.count += 1;
    try {
      return await this.#reviews.mayUse(account, name ?? ALL_POLICIES, this.#never);
    } finally {
      // Whoever is let in takes the place.
      this.#running -= this.#line.letIn() ? 0 : 1;
    }
  }
}
