/** All policies that were read, and who may use which: what an account's pods, or a user's leases, are judged by. */
import { LRUCache } from 'lru-cache';
import { ConfigurationError, type Problem } from '../errors.ts';
import { type AccessGrant, type Account, PolicyAccess } from './access.ts';
import { API_GROUPS, type PolicyDocuments, readPolicyDocuments } from './documents.ts';
import { EffectivePolicy } from './effective-policy.ts';
import { byName } from './merge.ts';
import type { MergeStrategy } from './merge-strategy.ts';
import type { SchedulingPolicy } from './policy.ts';
import { SystemTolerations } from './system-tolerations.ts';

/** So many accounts are remembered; any other costs one merge of its policies. */
const ACCOUNTS = 10_000;

export interface SchedulingPoliciesOptions {
  /** Default `deep`. */
  readonly strategy?: MergeStrategy;
  /** In the notation of `[kubernetes] system_tolerations`, with its default. */
  readonly systemTolerations?: readonly string[];
}

export class SchedulingPolicies {
  /** In the order of their names. */
  readonly policies: readonly SchedulingPolicy[];
  readonly #byName: ReadonlyMap<string, SchedulingPolicy>;
  readonly #access: PolicyAccess;
  readonly #strategy: MergeStrategy;
  readonly #systemTolerations: SystemTolerations;
  readonly #accounts = new LRUCache<string, EffectivePolicy>({ max: ACCOUNTS });

  constructor(documents: PolicyDocuments, options: SchedulingPoliciesOptions = {}) {
    this.policies = [...documents.policies].sort(byName);
    this.#byName = new Map(this.policies.map((policy) => [policy.name, policy]));
    const names = this.policies.map(({ name }) => name);
    this.#access = new PolicyAccess(names, documents.roles, documents.bindings, API_GROUPS);
    this.#strategy = options.strategy ?? 'deep';
    this.#systemTolerations = new SystemTolerations(options.systemTolerations);
  }

  /** Reads files and folders. @throws ConfigurationError with every mistake, each with file and line. */
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

  /** The names of the policies that an account may use, in order. */
  usableBy(account: Account): readonly string[] {
    return this.#access.usableBy(account);
  }

  /** Who is named in a binding, and may use which policies by it. */
  grants(): readonly AccessGrant[] {
    return this.#access.grants();
  }

  /** What applies to an account. `without`: policies that are left out, as if it might not use them. */
  effectiveFor(account: Account, without?: ReadonlySet<string>): EffectivePolicy {
    const { user, groups, namespace } = account;
    const key = JSON.stringify([user, groups, namespace, without === undefined]);
    const known = this.#accounts.get(key);
    if (known !== undefined) {
      return known;
    }
    const names = this.usableBy(account).filter((name) => without?.has(name) !== true);
    const policies = names.flatMap((name) => this.#byName.get(name) ?? []);
    const effective = new EffectivePolicy(policies, this.#strategy, this.#systemTolerations);
    this.#accounts.set(key, effective);
    return effective;
  }
}
