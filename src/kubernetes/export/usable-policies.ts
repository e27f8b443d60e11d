/** Merges policies when it is unknown which of them an account may use: each counts under a condition. */
import { isMapping, valueAt } from '../../base/yaml/tree.ts';
import type { MergeStrategy } from '../policies/merge.ts';
import type { Allowed, SchedulingPolicy } from '../policies/policy.ts';
import { and, type Cel, choose, FALSE, not, or, TRUE } from './cel.ts';

export interface ConditionalPolicy {
  readonly policy: SchedulingPolicy;
  readonly condition: Cel;
}

/** `deep` and `simple`; the others use one policy at a time, for which both are the same. */
type Levels = 'all' | 'fields';

/** Policies in the order of their names, merged part by part. */
export class UsablePolicies {
  readonly policies: readonly SchedulingPolicy[];
  readonly #conditional: readonly ConditionalPolicy[];
  readonly #levels: Levels;

  constructor(conditional: readonly ConditionalPolicy[], levels: Levels) {
    this.#conditional = conditional;
    this.#levels = levels;
    this.policies = conditional.map(({ policy }) => policy);
  }

  /**
   * A condition on what the merged policy requires or adds at a path, such as `nodeSelectors`, `disk`: the
   * first policy with it decides. With the strategy `simple`, the first with the whole field. `otherwise`: if
   * no usable policy has it.
   */
  first<Value>(
    section: 'required' | 'default',
    path: readonly [string, ...string[]],
    then: (value: Value) => Cel,
    otherwise: Cel,
  ): Cel {
    return this.#conditional.reduceRight((rest, { policy, condition }) => {
      const value = valueAt(policy[section], path);
      const isThere = this.#levels === 'all' ? value : valueAt(policy[section], path.slice(0, 1));
      if (isThere === undefined) {
        return rest;
      }
      return choose(condition, value === undefined ? otherwise : then(value as Value), rest);
    }, otherwise);
  }

  /** Whether a field is required. */
  requires(path: readonly [string, ...string[]]): Cel {
    return this.first('required', path, () => TRUE, FALSE);
  }

  /** A condition on what is allowed: by any policy; with `simple`, by the first one with the field. */
  allows<Field extends keyof Allowed>(field: Field, then: (value: NonNullable<Allowed[Field]>) => Cel): Cel {
    const granting = this.#conditional.flatMap(({ policy, condition }) => {
      const value = policy.allowed[field];
      return value === undefined ? [] : [{ condition, granted: then(value as NonNullable<Allowed[Field]>) }];
    });
    return this.#levels === 'all'
      ? or(...granting.map((one) => and(one.condition, one.granted)))
      : granting.reduceRight((rest, one) => choose(one.condition, one.granted, rest), FALSE);
  }

  /** Names that policies use for members of a mapping, such as labels. */
  names(section: 'required' | 'allowed' | 'default', field: string): string[] {
    const mappings = this.policies.map((policy) => valueAt(policy[section], [field]));
    return [...new Set(mappings.flatMap((one) => (isMapping(one) ? Object.keys(one) : [])))];
  }
}

/**
 * A condition for what an account's merged policies accept. `of` returns it for policies that are merged in
 * parts.
 */
export function byStrategy(
  strategy: MergeStrategy,
  conditional: readonly ConditionalPolicy[],
  of: (policies: UsablePolicies) => Cel,
): Cel {
  const alone = (policy: SchedulingPolicy) => of(new UsablePolicies([{ policy, condition: TRUE }], 'all'));
  switch (strategy) {
    case 'deep':
      return of(new UsablePolicies(conditional, 'all'));
    case 'simple':
      return of(new UsablePolicies(conditional, 'fields'));
    case 'first':
      return conditional.reduceRight(
        (rest, { policy, condition }) => choose(condition, alone(policy), rest),
        FALSE,
      );
    case 'intersection':
      return and(...conditional.map(({ policy, condition }) => or(not(condition), alone(policy))));
  }
}
