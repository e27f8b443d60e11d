/** All policies, and the accounts that may use them: decides which policies apply to a pod or a lease. */
import { LRUCache } from 'lru-cache';
import { ConfigurationError, type Problem } from '../errors.ts';
import { type AccessGrant, type Account, PolicyAccess } from './access.ts';
import { Cluster, type ClusterOptions } from './cluster.ts';
import { type PolicyDocuments, readPolicyDocuments } from './documents.ts';
import { EffectivePolicy } from './effective-policy.ts';
import { byName, type MergeStrategy } from './merge.ts';
import type { SchedulingPolicy } from './policy.ts';

/** Size of the cache of accounts. Others cost one merge of their policies. */
const ACCOUNTS = 10_000;

export interface SchedulingPoliciesOptions extends ClusterOptions {
  /** Default: `deep`. */
  readonly strategy?: MergeStrategy;
}

export class SchedulingPolicies {
  /** Sorted by name. */
  readonly policies: readonly SchedulingPolicy[];
  readonly #documents: PolicyDocuments;
  readonly #options: SchedulingPoliciesOptions;
  readonly #byName: ReadonlyMap<string, SchedulingPolicy>;
  readonly #access: PolicyAccess;
  readonly #cluster: Cluster;
  readonly #accounts = new LRUCache<string, EffectivePolicy>({ max: ACCOUNTS });

  constructor(documents: PolicyDocuments, options: SchedulingPoliciesOptions = {}) {
    this.policies = [...documents.policies].sort(byName);
    this.#documents = documents;
    this.#options = options;
    this.#byName = new Map(this.policies.map((policy) => [policy.name, policy]));
    this.#access = new PolicyAccess(this.policies, documents.roles, documents.bindings);
    this.#cluster = new Cluster(options);
  }

  /** Reads files and folders. @throws ConfigurationError with all problems, each with file and line */
  static read(
    paths: readonly string[],
    options: SchedulingPoliciesOptions = {},
  ): { readonly policies: SchedulingPolicies; readonly warnings: readonly Problem[] } {
    const documents = readPolicyDocuments(paths);
    if (documents.problems.some(({ severity }) => severity === 'error')) {
      throw new ConfigurationError(documents.problems);
    }
    return { policies: new SchedulingPolicies(documents, options), warnings: documents.problems };
  }

  /** A copy without the named policies. */
  without(names: ReadonlySet<string>): SchedulingPolicies {
    const policies = this.policies.filter(({ name }) => !names.has(name));
    return new SchedulingPolicies({ ...this.#documents, policies }, this.#options);
  }

  /** The grants of all bindings. */
  grants(): readonly AccessGrant[] {
    return this.#access.grants();
  }

  /** The merged policies of an account. */
  effectiveFor(account: Account): EffectivePolicy {
    const { user, groups, namespace } = account;
    const key = JSON.stringify([user, groups, namespace]);
    const known = this.#accounts.get(key);
    if (known !== undefined) {
      return known;
    }
    const policies = this.#access.usableBy(account).flatMap((name) => this.#byName.get(name) ?? []);
    const { strategy = 'deep' } = this.#options;
    const effective = new EffectivePolicy(policies, strategy, this.#cluster);
    this.#accounts.set(key, effective);
    return effective;
  }
}
