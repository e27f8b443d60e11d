/** The terms of affinities: where pods have them, and rules for their expressions about node labels and node fields. */
import {
  AFFINITY_TIMES,
  type AffinityRules,
  type AffinityTime,
  type ExpressionRule,
  type TermRule,
} from '../documents/policy-schema.ts';
import type { Affinity, Expression, NodeSelectorTerm } from '../pod.ts';
import { listed, quoted } from './reason.ts';

/**
 * The items of a rule; `undefined` = any, for a missing or empty list. A set, since a rule may list all nodes,
 * and a pod name each of them often.
 */
type Listed = ReadonlySet<string> | undefined;

function listedOf(values: readonly string[] | undefined): Listed {
  return values === undefined || values.length === 0 ? undefined : new Set(values);
}

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
    (rule.values === undefined || (values ?? []).every((value) => rule.values?.has(value)))
  );
}

/** These operators match nodes without the label. */
const WITHOUT_LABEL = ['NotIn', 'DoesNotExist'];

/**
 * Whether an expression guarantees what the rule requires. Without operators in the rule, the label must exist. If
 * values must be avoided, all of them must be.
 */
export function holds(rule: Rule, { key, operator, values }: Expression): boolean {
  if (!isAbout(rule, key, operator) || (rule.operators === undefined && WITHOUT_LABEL.includes(operator))) {
    return false;
  }
  if (rule.values === undefined) {
    return true;
  }
  const written = new Set(values);
  const [these, those] = operator === 'NotIn' ? [rule.values, written] : [written, rule.values];
  return [...these].every((value) => those.has(value));
}

function isAbout({ keys, operators, values }: Rule, key: string, operator: string): boolean {
  return (
    (keys === undefined || keys.has(key)) &&
    (operators === undefined ? values === undefined || operator === 'In' : operators.has(operator))
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

/** The rule that a default implies: exactly itself. */
export function impliedRule({ key, operator, values }: Expression): Rule {
  return { keys: new Set([key]), operators: new Set([operator]), values: listedOf(values ?? undefined) };
}

const descriptions = new WeakMap<readonly Rule[], string>();

/** Kept, since each of a thousand terms may be refused for it. */
export function describeRules(rules: readonly Rule[]): string {
  const text =
    descriptions.get(rules) ??
    `an expression that is allowed (${listed([...new Set(rules.map(describeRule))], 'or')})`;
  descriptions.set(rules, text);
  return text;
}

export function describe({ key, operator, values }: Expression): string {
  const [first] = values ?? [];
  return `${quoted(key)} ${operator}${first === undefined ? '' : ` ${listed((values ?? []).map(quoted), 'or')}`}`;
}

export function describeRule({ keys, operators, values }: Rule): string {
  const key = keys === undefined ? 'any key' : listed([...keys], 'or');
  const operator =
    operators === undefined
      ? values === undefined
        ? 'with any operator'
        : 'In'
      : listed([...operators], 'or');
  return `${key} ${operator}${values === undefined ? '' : ` ${listed([...values], 'or')}`}`;
}

const [REQUIRED, PREFERRED] = AFFINITY_TIMES;

/** The kinds, as pods and as policies spell them. */
export const KINDS = {
  nodeAffinity: 'nodeAffinities',
  podAffinity: 'podAffinities',
  podAntiAffinity: 'podAntiAffinities',
} as const;

export type Kind = keyof typeof KINDS;

export const KIND_NAMES = Object.keys(KINDS) as Kind[];

export interface Place {
  readonly kind: Kind;
  readonly time: AffinityTime;
}

export const PLACES: readonly Place[] = KIND_NAMES.flatMap((kind) =>
  AFFINITY_TIMES.map((time) => ({ kind, time })),
);

/** What a policy allows at a place: an empty list is everything, `undefined` nothing. An empty mapping allows everything below it. */
export function allowedTerms(rules: AffinityRules, { kind, time }: Place): readonly TermRule[] | undefined {
  const ofKind = Object.keys(rules).length === 0 ? {} : rules[KINDS[kind]];
  const ofTime: { nodeSelectorTerms?: readonly TermRule[] | undefined } | undefined =
    ofKind !== undefined && Object.keys(ofKind).length === 0 ? {} : ofKind?.[time];
  return ofTime === undefined ? undefined : (ofTime.nodeSelectorTerms ?? []);
}

/** The rules of terms for their label or field expressions. An empty term allows everything below it. */
export function expressionRules(
  terms: readonly TermRule[],
  list: 'matchExpressions' | 'matchFields',
): Rule[] {
  return terms.flatMap((term) => rulesIn(Object.keys(term).length === 0 ? [] : term[list]));
}

export interface RequestedAffinity {
  readonly place: string;
  readonly terms: readonly unknown[];
}

/** Omits what the pod does not set. Includes unknown kinds and times. */
export function requestedAffinities(affinity: Affinity): RequestedAffinity[] {
  return Object.entries(affinity).flatMap(([kind, times]: [string, unknown]) => {
    if (typeof times !== 'object') {
      return times === undefined ? [] : [{ place: kind, terms: [times] }];
    }
    return Object.entries(times ?? {}).flatMap(([time, value]) => {
      const terms = termsOf(kind, time, value);
      return terms.length === 0 ? [] : [{ place: `${kind}.${time}`, terms }];
    });
  });
}

function termsOf(kind: string, time: string, value: unknown): readonly unknown[] {
  if (value === undefined || value === null) {
    return [];
  }
  if (kind === 'nodeAffinity' && time === REQUIRED) {
    return (value as { nodeSelectorTerms?: NodeSelectorTerm[] | null }).nodeSelectorTerms ?? [];
  }
  if (kind === 'nodeAffinity' && time === PREFERRED) {
    return (value as { preference: NodeSelectorTerm }[]).map(({ preference }) => preference);
  }
  return Array.isArray(value) ? value : [value];
}

/** The node field that holds its name. */
export const NODE_NAME = 'metadata.name';

/** The expression that the DaemonSet controller writes. */
export function isNodeName({ key, operator, values }: Expression): boolean {
  return key === NODE_NAME && operator === 'In' && values?.length === 1;
}
