/** The part of the obvious evaluator that judges affinities. */
import { isDeepStrictEqual } from 'node:util';
import type { Applying } from '../documents/obvious-documents.ts';

/** By kind, such as `nodeAffinity`, and by time. */
export type PodAffinities = Readonly<Record<string, Readonly<Record<string, unknown>> | null>>;

interface ObviousExpression {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[] | null;
}

interface Term {
  readonly matchExpressions?: readonly ObviousExpression[] | null;
  readonly matchFields?: readonly ObviousExpression[] | null;
}

/** An absent or empty part means any. */
interface ExpressionRule {
  readonly keys?: readonly string[];
  readonly operators?: readonly string[];
  readonly values?: readonly string[];
}

interface TermRule {
  readonly matchExpressions?: readonly ExpressionRule[];
  readonly matchFields?: readonly ExpressionRule[];
}

/** Of all kinds, of one kind, and at one time. */
type AllRules = Readonly<Record<string, KindRules>>;
type KindRules = Readonly<Record<string, TimeRules>>;
type TimeRules = { readonly nodeSelectorTerms?: readonly TermRule[] };

export const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
export const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';
const TIMES = [REQUIRED, PREFERRED];
const PLURALS: Readonly<Record<string, string>> = {
  nodeAffinity: 'nodeAffinities',
  podAffinity: 'podAffinities',
  podAntiAffinity: 'podAntiAffinities',
};
const ANYTHING: readonly TermRule[] = [{}];

/** The terms that stand there. */
export function askedAt(affinity: PodAffinities | null | undefined, kind: string, time: string): unknown[] {
  const value = affinity?.[kind]?.[time] ?? [];
  if (kind === 'nodeAffinity' && time === REQUIRED) {
    return (value as { nodeSelectorTerms?: Term[] }).nodeSelectorTerms ?? [];
  }
  return Array.isArray(value) ? value : [value];
}

/** Whether a policy lets the pod ask for all that it asks for. */
export function isAffinityAllowed(
  affinity: PodAffinities,
  applying: Applying,
  isForOneNode: boolean,
): boolean {
  const grants = (applying.allowed.affinities ?? []) as AllRules[];
  if (grants.some(isEmpty)) {
    return true;
  }
  return Object.entries(affinity).every(([kind, times]) =>
    Object.keys(times ?? {}).every((time) => {
      const asked = askedAt(affinity, kind, time);
      const added = askedAt(applying.default.affinity as PodAffinities, kind, time);
      const must = applying.required.affinities as AllRules | undefined;
      const rules = [...grants, ...(must === undefined ? [] : [must])].flatMap((all) =>
        termRules(all, kind, time),
      );
      return kind === 'nodeAffinity'
        ? asked.every((term) => isTermAllowed(termOf(term), rules, added.map(termOf), isForOneNode))
        : rules.includes(ANYTHING[0] as TermRule) ||
            asked.every((term) => added.some((one) => isDeepStrictEqual(one, term)));
    }),
  );
}

function isEmpty(mapping: object): boolean {
  return Object.keys(mapping).length === 0;
}

/** What is written for one kind and time: `{}` at any level stands for everything below it. */
function termRules(all: AllRules, kind: string, time: string): readonly TermRule[] {
  const plural = PLURALS[kind];
  if (plural === undefined || !TIMES.includes(time)) {
    return [];
  }
  const ofKind = all[plural];
  if (ofKind === undefined) {
    return [];
  }
  if (isEmpty(ofKind)) {
    return ANYTHING;
  }
  const ofTime = ofKind[time];
  if (ofTime === undefined) {
    return [];
  }
  const terms = ofTime.nodeSelectorTerms ?? [];
  return terms.length === 0 ? ANYTHING : terms;
}

function termOf(term: unknown): Term {
  const { preference } = term as { preference?: Term };
  return preference ?? (term as Term);
}

/** Each expression needs one rule, in whichever term it is written. */
function isTermAllowed(
  term: Term,
  rules: readonly TermRule[],
  added: readonly Term[],
  isForOneNode: boolean,
): boolean {
  const list = (name: 'matchExpressions' | 'matchFields', asked: readonly ObviousExpression[]) =>
    asked.every(
      (expression) =>
        rules.some((rule) => {
          const any = isEmpty(rule) || rule[name]?.length === 0;
          return any || (rule[name] ?? []).some((one) => isWithin(expression, one));
        }) || added.some((one) => (one[name] ?? []).some((other) => isWithinDefault(expression, other))),
    );
  // The DaemonSet controller names the node of each of its pods.
  const fields = (term.matchFields ?? []).filter(
    ({ key, operator, values }) =>
      !(isForOneNode && key === 'metadata.name' && operator === 'In' && values?.length === 1),
  );
  const isMentioned = rules.length > 0 || added.length > 0 || isForOneNode;
  return isMentioned && list('matchExpressions', term.matchExpressions ?? []) && list('matchFields', fields);
}

function isAbout(rule: ExpressionRule, { key, operator }: ObviousExpression): boolean {
  const { keys = [], operators = [], values = [] } = rule;
  const keyFits = keys.length === 0 || keys.includes(key);
  // NotIn, Exists and the like ask for more than the values that are listed.
  const operatorFits =
    operators.length > 0 ? operators.includes(operator) : values.length === 0 || operator === 'In';
  return keyFits && operatorFits;
}

function isWithin(expression: ObviousExpression, rule: ExpressionRule): boolean {
  const { values = [] } = rule;
  return (
    isAbout(rule, expression) &&
    (values.length === 0 || (expression.values ?? []).every((value) => values.includes(value)))
  );
}

function isWithinDefault({ key, operator, values }: ObviousExpression, added: ObviousExpression): boolean {
  return (
    key === added.key &&
    operator === added.operator &&
    (values ?? []).every((value) => added.values?.includes(value) === true)
  );
}

/** Whether the pod has all that it must have. */
export function isAffinityEnough(
  affinity: PodAffinities,
  applying: Applying,
  isForOneNode: boolean,
): boolean {
  const must = (applying.required.affinities ?? {}) as AllRules;
  return Object.entries(PLURALS).every(([kind, plural]) => {
    const ofKind = must[plural];
    if (ofKind === undefined) {
      return true;
    }
    if (isEmpty(ofKind)) {
      return TIMES.some((time) => askedAt(affinity, kind, time).length > 0);
    }
    return Object.entries(ofKind).every(([time, { nodeSelectorTerms: terms = [] }]) => {
      const asked = askedAt(affinity, kind, time);
      // What the template has was judged with it; its pods have the name of their node in its place.
      if (isForOneNode && kind === 'nodeAffinity' && time === REQUIRED && areNodeNames(asked)) {
        return true;
      }
      if (asked.length === 0 || terms.length === 0) {
        return asked.length > 0;
      }
      const isEnough = (term: unknown) => terms.some((rules) => isFulfilled(termOf(term), rules));
      // The scheduler may take any of what is required; what is preferred is all looked at.
      return time === REQUIRED ? asked.every(isEnough) : asked.some(isEnough);
    });
  });
}

function areNodeNames(terms: readonly unknown[]): boolean {
  return (
    terms.length > 0 &&
    (terms as Term[]).every(({ matchExpressions, matchFields }) => {
      const [field, ...others] = [...(matchFields ?? []), ...(matchExpressions ?? [])];
      const isName = field?.key === 'metadata.name' && field.operator === 'In' && field.values?.length === 1;
      return isName && others.length === 0 && matchFields?.length === 1;
    })
  );
}

function isFulfilled(term: Term, { matchExpressions: rules = [] }: TermRule): boolean {
  return rules.every((rule) =>
    (term.matchExpressions ?? []).some((expression) => {
      const { values = [] } = rule;
      const written = expression.values ?? [];
      const areValuesFit =
        expression.operator === 'NotIn'
          ? values.every((value) => written.includes(value))
          : values.length === 0 || written.every((value) => values.includes(value));
      // Of a label that may be missing nobody can say that it is required.
      const { operators = [] } = rule;
      const mayBeMissing = ['NotIn', 'DoesNotExist'].includes(expression.operator) && operators.length === 0;
      return isAbout(rule, expression) && areValuesFit && !mayBeMissing;
    }),
  );
}
