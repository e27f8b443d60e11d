/**
 * Policies and permissions of a cluster at one moment, the source for commands; and what is read once for it:
 * policies, the default priority class, and the roles and bindings about the use of policies.
 */
import { z } from 'zod';
import {
  type Account,
  type AccountPolicies,
  type Binding,
  boundRole,
  includes,
  PolicyAccess,
  type PolicySource,
  RESOURCE,
  type Role,
  roleId,
  VERB,
} from '../../policies/access.ts';
import { CLUSTER_GROUP, type InvalidPolicy, type SchedulingPolicy } from '../../policies/policy.ts';
import type { PolicySet } from '../../policies/scheduling-policies.ts';
import { type ApiClient, ApiError } from '../api/contract.ts';
import { listObjects, listPages } from '../api/list.ts';
import { elapsed } from '../api/timing.ts';
import { AccessReviews, ReviewLine } from '../live/access-review.ts';
import { MOST_WITHOUT_HINT, reviewPolicies } from '../live/permission-answers.ts';
import { bindingIn, RBAC_PATH, roleIn, type UseHint } from '../live/rbac-hint.ts';
import { POLICIES_PATH, readPolicy } from '../live/read-policy.ts';

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
    const { usable } = await reviewPolicies(
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

/** `namespace`: only its roles and bindings, besides those of the cluster. The rules of aggregated roles are as the control plane has written them. */
export async function readClusterRbac(client: ApiClient, namespace?: string) {
  const place =
    namespace === undefined ? RBAC_PATH : `${RBAC_PATH}/namespaces/${encodeURIComponent(namespace)}`;
  const roles: Role[] = [];
  const bindings: Binding[] = [];
  for (const [kind, path] of [
    ['clusterroles', `${RBAC_PATH}/clusterroles`],
    ['roles', `${place}/roles`],
  ] as const) {
    for await (const { items } of listPages(client, path)) {
      roles.push(...items.map((item) => roleIn(kind, item)).filter(isAboutUse));
    }
  }
  const known = new Set(roles.map((one) => roleId(one.kind, one.namespace, one.name)));
  for (const [kind, path] of [
    ['clusterrolebindings', `${RBAC_PATH}/clusterrolebindings`],
    ['rolebindings', `${place}/rolebindings`],
  ] as const) {
    for await (const { items } of listPages(client, path)) {
      bindings.push(
        ...items.map((item) => bindingIn(kind, item)).filter((one) => known.has(boundRole(one).role)),
      );
    }
  }
  return { roles, bindings };
}

/** Most roles of a cluster are not, and need no memory. */
function isAboutUse({ rules }: Role): boolean {
  return rules.some(({ verbs, resources }) => includes(verbs, VERB) && includes(resources, RESOURCE));
}

export interface ClusterPolicies {
  readonly valid: readonly SchedulingPolicy[];
  readonly invalid: readonly InvalidPolicy[];
}

/**
 * Invalid policies are returned as such: their requirements are unknown. @throws ApiError
 * @throws ApiUnreachableError
 */
export async function readClusterPolicies(client: ApiClient): Promise<ClusterPolicies> {
  const valid: SchedulingPolicy[] = [];
  const invalid: InvalidPolicy[] = [];
  const { objects } = await listObjects(client, POLICIES_PATH);
  for (const object of objects) {
    const { policy, mistake } = readPolicy(object);
    if (policy === undefined) {
      invalid.push({ name: object.metadata.name, message: mistake });
    } else {
      valid.push(policy);
    }
  }
  return { valid, invalid };
}

const priorityClass = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  globalDefault: z.boolean().nullish(),
  value: z.number().nullish(),
});

/** The PriorityClass that the API server gives to pods without one: of several, the one with the lowest value. */
export async function readDefaultPriorityClass(client: ApiClient): Promise<string | undefined> {
  const { objects } = await listObjects(client, '/apis/scheduling.k8s.io/v1/priorityclasses');
  return objects
    .map((item) => priorityClass.parse(item))
    .filter(({ globalDefault }) => globalDefault === true)
    .sort((a, b) => (a.value ?? 0) - (b.value ?? 0))
    .at(0)?.metadata.name;
}
