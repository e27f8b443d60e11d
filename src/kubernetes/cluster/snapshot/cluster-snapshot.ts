/** Policies and permissions of a cluster at one moment: the source for commands. */
import {
  type Account,
  type AccountPolicies,
  PolicyAccess,
  type PolicySource,
} from '../../policies/access.ts';
import { CLUSTER_GROUP } from '../../policies/policy.ts';
import type { PolicySet } from '../../policies/scheduling-policies.ts';
import { type ApiClient, ApiError } from '../api/contract.ts';
import { elapsed } from '../api/timing.ts';
import { AccessReviews, ReviewLine } from '../live/access-review.ts';
import { MOST_WITHOUT_HINT, reviewRound } from '../live/answer-sheet.ts';
import type { UseHint } from '../live/rbac-hint.ts';
import { readClusterRbac } from './cluster-rbac.ts';

interface SnapshotOptions {
  /** See the option `rights` of `[kubernetes]`. */
  readonly rights: 'auto' | 'every';
  /** Roles and bindings would limit the policies to review, but may not be listed. */
  readonly onUnlisted: (error: ApiError) => void;
}

export class ClusterSnapshot implements PolicySource {
  readonly set: PolicySet;
  /** Of all policies, valid or not, sorted. */
  readonly names: readonly string[];
  readonly #client: ApiClient;
  readonly #reviews: UseReviews;
  readonly #line = new ReviewLine(AT_ONCE);
  readonly #options: SnapshotOptions;
  readonly #known = new Map<string, Promise<AccountPolicies>>();
  #hint: Promise<UseHint | undefined> | undefined;

  constructor(set: PolicySet, client: ApiClient, reviews: UseReviews, options: SnapshotOptions) {
    this.set = set;
    this.names = [...set.policies, ...set.invalid].map(({ name }) => name).sort();
    this.#client = client;
    this.#reviews = reviews;
    this.#options = options;
  }

  /** @throws ApiError @throws ApiUnreachableError */
  policiesOf(account: Account): Promise<AccountPolicies> {
    const key = JSON.stringify([account.user, account.groups, account.namespace]);
    const known = this.#known.get(key) ?? this.#asked(account);
    this.#known.set(key, known);
    return known;
  }

  async #asked(account: Account): Promise<AccountPolicies> {
    const { names } = this;
    const { rights } = this.#options;
    const isMany = names.length > MOST_WITHOUT_HINT && rights === 'auto';
    this.#hint ??= isMany ? this.#readHint() : undefined;
    const { usable } = await reviewRound(
      { reviews: this.#reviews, line: this.#line, rights, hint: await this.#hint, now: elapsed },
      { account, names, known: undefined, signal: new AbortController().signal },
    );
    return this.set.chosen(usable);
  }

  async #readHint(): Promise<UseHint | undefined> {
    try {
      const { roles, bindings } = await readClusterRbac(this.#client);
      const policies = this.names.map((name) => ({ name, group: CLUSTER_GROUP }));
      const access = new PolicyAccess(policies, roles, bindings);
      return {
        version: 0,
        candidates: (account) => access.usableBy(account),
        changedAt: () => Number.NEGATIVE_INFINITY,
      };
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.status === 403) {
        this.#options.onUnlisted(thrown);
        return undefined;
      }
      throw thrown;
    }
  }
}

/** An API server limits how many requests of one client it handles at once. */
const AT_ONCE = { total: 8, each: 8 };

/** Counts the reviews that it creates. */
export class UseReviews extends AccessReviews {
  count = 0;

  override mayUse(...question: Parameters<AccessReviews['mayUse']>): Promise<boolean> {
    this.count += 1;
    return super.mayUse(...question);
  }
}

/** Runs some work for each item, a few at a time. Rejects with the first error. */
export function sideBySide<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  return new ReviewLine(AT_ONCE).all(items, work, new AbortController().signal);
}
