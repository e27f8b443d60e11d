/** Rules for expressions about node labels and node fields. */

import type { ExpressionRule } from '../documents/policy-schema.ts';
import type { Expression } from '../pod.ts';
import { listed, quoted } from './reason.ts';

/** The items of a rule; `undefined` = any, for a missing or empty list. */
export type Listed = readonly string[] | undefined;

export function listedOf(values: readonly string[] | undefined): Listed {
  return values === undefined || values.length === 0 ? undefined : values;
}

/** What a rule allows. */
export interface Rule {
  readonly keys: Listed;
  readonly operators: Listed;
  readonly values: Listed;
}

/**
 * Whether a rule allows an expression: all its values must be listed. If the rule lists values, other operators than
 * `In` (`NotIn`, `Exists`, …) must be listed too.
 */
export function allows(rule: Rule, { key, operator, values }: Expression): boolean {
  return (
    isAbout(rule, key, operator) &&
    (rule.values === undefined || (values ?? []).every((value) => rule.values?.includes(value)))
  );
}

/** These operators match nodes without the label. */
const WITHOUT_LABEL = ['NotIn', 'DoesNotExist'];

/**
 * Whether an expression guarantees what the rule requires. Without operators in the rule, the label must exist. If
 * values must be avoided, all of them must be.
 */
export function holds(rule: Rule, { key, operator, values }: Expression): boolean {
  const written = values ?? [];
  if (!isAbout(rule, key, operator) || (rule.operators === undefined && WITHOUT_LABEL.includes(operator))) {
    return false;
  }
  if (rule.values === undefined) {
    return true;
  }
  return operator === 'NotIn'
    ? rule.values.every((value) => written.includes(value))
    : written.every((value) => rule.values?.includes(value));
}

function isAbout({ keys, operators, values }: Rule, key: string, operator: string): boolean {
  return (
    (keys === undefined || keys.includes(key)) &&
    (operators === undefined ? values === undefined || operator === 'In' : operators.includes(operator))
  );
}

/** An empty list means any. Absent means none if the term has the other kind. */
export function rulesIn(rules: readonly ExpressionRule[] | undefined): Rule[] {
  if (rules === undefined) {
    return [];
  }
  return rules.length === 0
    ? [{ keys: undefined, operators: undefined, values: undefined }]
    : rules.map(ruleOf);
}

function ruleOf({ keys, operators, values }: ExpressionRule): Rule {
  return { keys: listedOf(keys), operators: listedOf(operators), values: listedOf(values) };
}

/** The rule that a default implies: exactly what it is. */
export function impliedRule({ key, operator, values }: Expression): Rule {
  return { keys: [key], operators: [operator], values: listedOf(values ?? undefined) };
}

export function describeRules(rules: readonly Rule[]): string {
  return `an expression that is allowed (${listed([...new Set(rules.map(describeRule))], 'or')})`;
}

export function describe({ key, operator, values }: Expression): string {
  const [first] = values ?? [];
  return `${quoted(key)} ${operator}${first === undefined ? '' : ` ${listed((values ?? []).map(quoted), 'or')}`}`;
}

export function describeRule({ keys, operators, values }: Rule): string {
  const key = keys === undefined ? 'any key' : listed(keys, 'or');
  const operator =
    operators === undefined ? (values === undefined ? 'with any operator' : 'In') : listed(operators, 'or');
  return `${key} ${operator}${values === undefined ? '' : ` ${listed(values, 'or')}`}`;
}
