/** Policies and rights of a cluster at one moment: the source of commands that ask it. */
import {
  type Account,
  type AccountPolicies,
  PolicyAccess,
  type PolicySource,
} from '../../policies/access.ts';
import { CLUSTER_GROUP } from '../../policies/policy.ts';
import type { PolicySet } from '../../policies/scheduling-policies.ts';
import { type ApiClient, ApiError } from '../api/contract.ts';
import { AccessReviews, ALL_POLICIES, ReviewLine } from '../live/access-review.ts';
import type { UsePermissions } from '../live/contract.ts';
import { readClusterRbac } from './cluster-rbac.ts';

export class ClusterSnapshot implements PolicySource {
  readonly set: PolicySet;
  /** Of all policies, valid or not, sorted. */
  readonly names: readonly string[];
  readonly #permissions: UsePermissions;

  constructor(set: PolicySet, permissions: UsePermissions) {
    this.set = set;
    this.names = [...set.policies, ...set.invalid].map(({ name }) => name).sort();
    this.#permissions = permissions;
  }

  /** @throws ApiError @throws ApiUnreachableError */
  async policiesOf(account: Account): Promise<AccountPolicies> {
    return this.set.chosen(
      this.names.length === 0 ? [] : await this.#permissions.usable(account, this.names),
    );
  }
}

/** Up to as many policies, each is asked for. */
const FEW = 32;

interface SnapshotPermissionsOptions {
  /** See the option `rights` of `[kubernetes]`. */
  readonly rights: 'auto' | 'every';
  /** Roles and bindings would have named the policies to ask for, but may not be listed. */
  readonly onUnlisted: (error: ApiError) => void;
}

export class SnapshotPermissions implements UsePermissions {
  readonly #client: ApiClient;
  readonly #reviews: UseReviews;
  readonly #options: SnapshotPermissionsOptions;
  readonly #known = new Map<string, Promise<readonly string[]>>();
  #hint: Promise<PolicyAccess | undefined> | undefined;

  constructor(client: ApiClient, reviews: UseReviews, options: SnapshotPermissionsOptions) {
    this.#client = client;
    this.#reviews = reviews;
    this.#options = options;
  }

  /** `names`: the same at each call. @throws ApiError @throws ApiUnreachableError */
  usable(account: Account, names: readonly string[]): Promise<readonly string[]> {
    const key = JSON.stringify([account.user, account.groups, account.namespace]);
    const known = this.#known.get(key);
    if (known !== undefined) {
      return known;
    }
    const asked = this.#asked(account, names);
    this.#known.set(key, asked);
    return asked;
  }

  async #asked(account: Account, names: readonly string[]): Promise<readonly string[]> {
    if (names.length > 1 && (await this.#reviews.mayUse(account, undefined))) {
      return names;
    }
    const candidates = await this.#candidates(account, names);
    const allowed = await sideBySide(candidates, (name) => this.#reviews.mayUse(account, name));
    return candidates.filter((_, index) => allowed[index]);
  }

  /** Roles say which are worth a review. A review then decides, since roles may have changed since. */
  async #candidates(account: Account, names: readonly string[]): Promise<readonly string[]> {
    if (names.length <= FEW || this.#options.rights === 'every') {
      return names;
    }
    this.#hint ??= this.#read(names);
    return (await this.#hint)?.usableBy(account) ?? names;
  }

  async #read(names: readonly string[]): Promise<PolicyAccess | undefined> {
    try {
      const { roles, bindings } = await readClusterRbac(this.#client);
      return new PolicyAccess(
        names.map((name) => ({ name, group: CLUSTER_GROUP })),
        roles,
        bindings,
      );
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

/** Creates reviews, a few at a time, and counts them. */
export class UseReviews {
  readonly #reviews: AccessReviews;
  readonly #line = new ReviewLine(AT_ONCE);
  count = 0;

  constructor(client: ApiClient) {
    this.#reviews = new AccessReviews(client);
  }

  /**
   * `name`: of a policy; `undefined` = all policies. Without a namespace, only cluster-wide rights count.
   * @throws SourceUnavailableError whose cause is what the API server answered
   */
  async mayUse(account: Account, name: string | undefined): Promise<boolean> {
    const { signal } = new AbortController();
    const ask = (one: string) => {
      this.count += 1;
      return this.#reviews.mayUse(account, one, signal);
    };
    const [mayUse] = await this.#line.all([name ?? ALL_POLICIES], ask, signal);
    return mayUse === true;
  }
}

/** Does some work for each item, a few at a time. Rejects with the first error. */
export function sideBySide<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  return new ReviewLine(AT_ONCE).all(items, work, new AbortController().signal);
}
