/** Policies and rights from files: selects the policies for a pod or a lease, and merges them. */
import { LRUCache } from 'lru-cache';
import { type Problem, refuseErrors } from '../../base/errors.ts';
import {
  type AccessGrant,
  type Account,
  type AccountPolicies,
  PolicyAccess,
  type PolicySource,
} from './access.ts';
import { Cluster, type ClusterOptions } from './cluster-settings.ts';
import { type PolicyDocuments, readPolicyDocuments } from './documents/documents.ts';
import { EffectivePolicy } from './effective-policy.ts';
import { byName, type MergeStrategy } from './merge.ts';
import type { InvalidPolicy, SchedulingPolicy } from './policy.ts';

/** Size of the cache of accounts. Others cost a lookup of their rights. */
const ACCOUNTS = 10_000;

export type SchedulingPoliciesOptions = PolicySetOptions;

export class SchedulingPolicies implements PolicySource {
  readonly #set: PolicySet;
  readonly #access: PolicyAccess;
  readonly #accounts = new LRUCache<string, AccountPolicies>({ max: ACCOUNTS });

  constructor({ policies, roles, bindings }: PolicyDocuments, options: SchedulingPoliciesOptions = {}) {
    this.#set = new PolicySet(policies, options);
    this.#access = new PolicyAccess(this.#set.policies, roles, bindings);
  }

  /** Reads files and folders. @throws ConfigurationError with all problems, each with file and line */
  static read(
    paths: readonly string[],
    options: SchedulingPoliciesOptions = {},
  ): { readonly policies: SchedulingPolicies; readonly warnings: readonly Problem[] } {
    const documents = readPolicyDocuments(paths);
    refuseErrors(documents.problems);
    return { policies: new SchedulingPolicies(documents, options), warnings: documents.problems };
  }

  /** Sorted by name. */
  get policies(): readonly SchedulingPolicy[] {
    return this.#set.policies;
  }

  grants(): readonly AccessGrant[] {
    return this.#access.grants();
  }

  policiesOf(account: Account): AccountPolicies {
    const { user, groups, namespace } = account;
    const key = JSON.stringify([user, groups, namespace]);
    const known = this.#accounts.get(key);
    if (known !== undefined) {
      return known;
    }
    const chosen = this.#set.chosen(this.#access.usableBy(account));
    this.#accounts.set(key, chosen);
    return chosen;
  }

  effectiveFor(account: Account): EffectivePolicy {
    return this.policiesOf(account).all;
  }
}

/** Accounts with the same policies share a merge. Others cost one merge of their policies. */
const CHOICES = 10_000;

export interface PolicySetOptions extends ClusterOptions {
  /** Default: `deep`. */
  readonly strategy?: MergeStrategy;
}

/** Immutable: a change makes a new one. */
export class PolicySet {
  /** Sorted by name. */
  readonly policies: readonly SchedulingPolicy[];
  readonly invalid: readonly InvalidPolicy[];
  readonly #byName: ReadonlyMap<string, SchedulingPolicy>;
  readonly #invalidByName: ReadonlyMap<string, InvalidPolicy>;
  readonly #options: PolicySetOptions;
  readonly #cluster: Cluster;
  readonly #merged = new LRUCache<string, EffectivePolicy>({ max: CHOICES });

  constructor(
    policies: readonly SchedulingPolicy[],
    options: PolicySetOptions = {},
    invalid: readonly InvalidPolicy[] = [],
  ) {
    this.policies = [...policies].sort(byName);
    this.invalid = invalid;
    this.#byName = new Map(this.policies.map((policy) => [policy.name, policy]));
    this.#invalidByName = new Map(invalid.map((policy) => [policy.name, policy]));
    this.#options = options;
    this.#cluster = new Cluster(options);
  }

  /** The named policies, merged. Unknown names have no effect. */
  effective(names: readonly string[]): EffectivePolicy {
    const key = names.join('\n');
    const known = this.#merged.get(key);
    if (known !== undefined) {
      return known;
    }
    const { strategy = 'deep' } = this.#options;
    const effective = new EffectivePolicy(
      names.flatMap((name) => this.#byName.get(name) ?? []),
      strategy,
      this.#cluster,
      names.flatMap((name) => this.#invalidByName.get(name) ?? []),
    );
    this.#merged.set(key, effective);
    return effective;
  }

  /** `names`: of the policies that an account may use, sorted. */
  chosen(names: readonly string[]): AccountPolicies {
    const effective = (chosen: readonly string[]) => this.effective(chosen);
    return {
      names,
      get all() {
        return effective(names);
      },
      without: (left) => effective(names.filter((name) => !left.has(name))),
    };
  }
}
