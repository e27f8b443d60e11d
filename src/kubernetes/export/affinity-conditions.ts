/** The rules of `AffinityRules` as CEL: about terms `t` and their expressions `e`. */
import { AFFINITY_TIMES, type AffinityTime, type TermRule } from '../policies/documents/policy-schema.ts';
import type { Expression, NodeSelectorTerm } from '../policies/pod.ts';
import { comparableTerm } from '../policies/rules/affinity-rules.ts';
import {
  allowedTerms,
  expressionRules,
  impliedRule,
  KIND_NAMES,
  KINDS,
  type Kind,
  NODE_NAME,
  type Place,
  type Rule,
  rulesIn,
} from '../policies/rules/expression-rules.ts';
import {
  and,
  atom,
  type Cel,
  choose,
  constant,
  dataLiteral,
  equals,
  every,
  FALSE,
  isFalse,
  isOneOf,
  isTrue,
  listOf,
  not,
  or,
  relation,
  some,
  TRUE,
} from './cel.ts';
import type { UsablePolicies } from './usable-policies.ts';

const [REQUIRED, PREFERRED] = AFFINITY_TIMES;

/** The variable that holds the terms of a pod at one place. */
export function termsAt({ kind, time }: Place): string {
  return `variables.${kind}${time === REQUIRED ? 'Required' : 'Preferred'}`;
}

/** Whether the pod has affinities of known kinds only, or may have all. */
export function knownAffinitiesCondition(policies: UsablePolicies): Cel {
  const known = and(
    relation(`kind in ${listOf(KIND_NAMES)}`),
    every('variables.affinity[kind]', 'time', relation(`time in ${listOf(AFFINITY_TIMES)}`)),
  );
  return or(allowsAll(policies), every('variables.affinity', 'kind', known));
}

/** Whether the terms at one place are allowed. */
export function affinityCondition(policies: UsablePolicies, place: Place): Cel {
  const { kind, time } = place;
  const isAll = allowsAllAt(policies, place);
  if (kind !== 'nodeAffinity') {
    const isDefault = policies.first<readonly unknown[]>(
      'default',
      ['affinity', kind, time],
      (terms) => or(...terms.map((term) => relation(`dyn(t) == ${dataLiteral(comparableTerm(term))}`))),
      FALSE,
    );
    return or(isAll, everyTerm(place, isDefault));
  }
  const isAllowed = (list: ExpressionList) =>
    or(
      policies.allows('affinities', (rules) => allowedBy(allowedTerms(rules, place) ?? [], list)),
      list === 'matchFields'
        ? FALSE
        : requiredTerms(policies, place, (terms) => allowedBy(terms, list), FALSE),
      defaultTerms(policies, time, (terms) => impliedBy(terms, list)),
    );
  const term = and(
    or(atom('variables.isForOneNode'), isMentioned(policies, place)),
    everyIn('matchExpressions', isAllowed('matchExpressions')),
    everyIn('matchFields', or(and(atom('variables.isForOneNode'), IS_NODE_NAME), isAllowed('matchFields'))),
  );
  return or(isAll, everyTerm(place, term));
}

/** Whether the pod has what is required at one place. */
export function requiredAffinityCondition(policies: UsablePolicies, place: Place): Cel {
  const { kind, time } = place;
  const terms = termsAt(place);
  const meets = requiredTerms(
    policies,
    place,
    (rules) => {
      const isMet = or(
        ...rules.map(({ matchExpressions }) =>
          and(
            ...rulesIn(matchExpressions).map((rule) =>
              and(atom('has(t.matchExpressions)'), some('t.matchExpressions', 'e', holds(rule))),
            ),
          ),
        ),
      );
      return time === REQUIRED ? every(terms, 't', isMet) : some(terms, 't', isMet);
    },
    TRUE,
  );
  return or(
    not(isRequired(policies, place)),
    kind === 'nodeAffinity' && time === REQUIRED ? atom('variables.isOfTemplate') : FALSE,
    and(relation(`${terms}.size() > 0`), meets),
  );
}

/** Whether the pod has some affinity of a kind that is required without a time. */
export function requiredKindCondition(policies: UsablePolicies, kind: Kind): Cel {
  return or(
    not(isRequiredAtAnyTime(policies, kind)),
    kind === 'nodeAffinity' ? atom('variables.isOfTemplate') : FALSE,
    ...AFFINITY_TIMES.map((time) => relation(`${termsAt({ kind, time })}.size() > 0`)),
  );
}

/** Whether a pod may name its node. */
export function nodeCondition(policies: UsablePolicies): Cel {
  const place: Place = { kind: 'nodeAffinity', time: REQUIRED };
  return or(
    allowsAllAt(policies, place),
    policies.allows('affinities', (rules) =>
      or(...expressionRules(allowedTerms(rules, place) ?? [], 'matchFields').map(isNode)),
    ),
    defaultTerms(policies, REQUIRED, nodeImpliedBy),
  );
}

/** Whether everything is allowed at one place. */
export function allowsAllAt(policies: UsablePolicies, place: Place): Cel {
  return or(
    policies.allows('affinities', (rules) => constant(allowedTerms(rules, place)?.length === 0)),
    isRequiredAtAnyTime(policies, place.kind),
    and(
      isRequired(policies, place),
      requiredTerms(policies, place, () => FALSE, TRUE),
    ),
  );
}

function allowsAll(policies: UsablePolicies): Cel {
  return policies.allows('affinities', (rules) => constant(Object.keys(rules).length === 0));
}

/** Whether any rule concerns the place. Otherwise not even an empty term is allowed. */
function isMentioned(policies: UsablePolicies, place: Place): Cel {
  return or(
    policies.allows('affinities', (rules) => constant(allowedTerms(rules, place) !== undefined)),
    isRequired(policies, place),
    isRequiredAtAnyTime(policies, place.kind),
    defaultTerms(policies, place.time, (terms) => constant(terms.length > 0)),
  );
}

function isRequired(policies: UsablePolicies, { kind, time }: Place): Cel {
  return policies.requires(['affinities', KINDS[kind], time]);
}

/** A kind is required, but no time. */
function isRequiredAtAnyTime(policies: UsablePolicies, kind: Kind): Cel {
  const times = AFFINITY_TIMES.map((time) => not(isRequired(policies, { kind, time })));
  return and(policies.requires(['affinities', KINDS[kind]]), ...times);
}

function requiredTerms(
  policies: UsablePolicies,
  { kind, time }: Place,
  then: (terms: readonly TermRule[]) => Cel,
  otherwise: Cel,
): Cel {
  return policies.first('required', ['affinities', KINDS[kind], time, 'nodeSelectorTerms'], then, otherwise);
}

function defaultTerms(
  policies: UsablePolicies,
  time: AffinityTime,
  then: (terms: readonly NodeSelectorTerm[]) => Cel,
): Cel {
  return time === PREFERRED
    ? policies.first<readonly { readonly preference: NodeSelectorTerm }[]>(
        'default',
        ['affinity', 'nodeAffinity', time],
        (preferences) => then(preferences.map(({ preference }) => preference)),
        FALSE,
      )
    : policies.first('default', ['affinity', 'nodeAffinity', time, 'nodeSelectorTerms'], then, FALSE);
}

/** `every` over terms; without any term it holds. */
function everyTerm(place: Place, condition: Cel): Cel {
  const terms = termsAt(place);
  return condition.text === FALSE.text ? relation(`${terms}.size() == 0`) : every(terms, 't', condition);
}

type ExpressionList = 'matchExpressions' | 'matchFields';

function allowedBy(terms: readonly TermRule[], list: ExpressionList): Cel {
  return or(...expressionRules(terms, list).map(allows));
}

/** Whether the terms of a default imply the expression. */
function impliedBy(terms: readonly NodeSelectorTerm[], list: ExpressionList): Cel {
  return or(...terms.flatMap((term) => (term[list] ?? []).map(impliedRule)).map(allows));
}

function nodeImpliedBy(terms: readonly NodeSelectorTerm[]): Cel {
  const fields = terms.flatMap((term): readonly Expression[] => term.matchFields ?? []);
  return or(...fields.map(impliedRule).map(isNode));
}

/** Whether a rule allows naming the node. */
function isNode({ keys, operators, values }: Rule): Cel {
  return and(
    constant(keys === undefined || keys.has(NODE_NAME)),
    constant(operators === undefined || operators.has('In')),
    values === undefined ? TRUE : isOneOf('variables.nodeName', values),
  );
}

/** See `allows` of the rules. */
function allows({ keys, operators, values }: Rule): Cel {
  return and(isAbout({ keys, operators, values }), values === undefined ? TRUE : areOneOf(values));
}

/** See `holds` of the rules. */
function holds(rule: Rule): Cel {
  const { operators, values } = rule;
  return and(
    isAbout(rule),
    operators === undefined ? not(isOneOf('e.operator', ['NotIn', 'DoesNotExist'])) : TRUE,
    values === undefined
      ? TRUE
      : choose(
          equals('e.operator', 'NotIn'),
          and(atom('has(e.values)'), every(listOf(values), 'v', relation('v in e.values'))),
          areOneOf(values),
        ),
  );
}

function isAbout({ keys, operators, values }: Rule): Cel {
  const isUsual = values === undefined ? TRUE : equals('e.operator', 'In');
  return and(
    keys === undefined ? TRUE : isOneOf('e.key', keys),
    operators === undefined ? isUsual : isOneOf('e.operator', operators),
  );
}

function areOneOf(values: Iterable<string>): Cel {
  return or(not(atom('has(e.values)')), every('e.values', 'v', isOneOf('v', values)));
}

/** Whether the expression is the one that the DaemonSet controller writes. */
export const IS_NODE_NAME: Cel = and(
  equals('e.key', NODE_NAME),
  equals('e.operator', 'In'),
  atom('has(e.values)'),
  relation('e.values.size() == 1'),
);

/** Whether each expression of the term `t` satisfies the condition. */
function everyIn(list: ExpressionList, condition: Cel): Cel {
  const all = every(`t.${list}`, 'e', condition);
  return isTrue(all)
    ? TRUE
    : or(not(atom(`has(t.${list})`)), isFalse(condition) ? relation(`t.${list}.size() == 0`) : all);
}
