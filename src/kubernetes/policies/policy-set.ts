/** Policies by name, and what any choice of them says together. */
import { LRUCache } from 'lru-cache';
import { Cluster, type ClusterOptions } from './cluster-settings.ts';
import { EffectivePolicy } from './effective-policy.ts';
import { byName, type MergeStrategy } from './merge.ts';
import type { InvalidPolicy, SchedulingPolicy } from './policy.ts';
import type { AccountPolicies } from './policy-source.ts';

/** Accounts with the same policies share a merge. Others cost one merge of their policies. */
const CHOICES = 10_000;

export interface PolicySetOptions extends ClusterOptions {
  /** Default: `deep`. */
  readonly strategy?: MergeStrategy;
}

/** Never changes: a change makes a new one. */
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

  /** What the named policies say together. Names of no policy have no effect. */
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

  /** `names`: those of the policies that an account may use, sorted. */
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
