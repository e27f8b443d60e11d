/** Policies and rights that were read from files: decides which policies apply to a pod or a lease. */
import { LRUCache } from 'lru-cache';
import { ConfigurationError, type Problem } from '../../base/errors.ts';
import { type AccessGrant, type Account, PolicyAccess } from './access.ts';
import { type PolicyDocuments, readPolicyDocuments } from './documents/documents.ts';
import type { EffectivePolicy } from './effective-policy.ts';
import type { SchedulingPolicy } from './policy.ts';
import { PolicySet, type PolicySetOptions } from './policy-set.ts';
import type { AccountPolicies, PolicySource } from './policy-source.ts';

/** Size of the cache of accounts. Others cost one lookup of their rights. */
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
    if (documents.problems.some(({ severity }) => severity === 'error')) {
      throw new ConfigurationError(documents.problems);
    }
    return { policies: new SchedulingPolicies(documents, options), warnings: documents.problems };
  }

  /** Sorted by name. */
  get policies(): readonly SchedulingPolicy[] {
    return this.#set.policies;
  }

  /** The grants of all bindings. */
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

  /** The merged policies of an account. */
  effectiveFor(account: Account): EffectivePolicy {
    return this.policiesOf(account).all;
  }
}
