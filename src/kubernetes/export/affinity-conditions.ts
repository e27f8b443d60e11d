/** The rules of `AffinityRules` and of `required-affinities.ts` as CEL. */

import {
  AFFINITY_TIMES,
  type AffinityRules,
  type AffinityTime,
  type TermRule,
} from '../policies/documents/policy-schema.ts';
import type { NodeSelectorTerm } from '../policies/pod.ts';
import { rulesIn } from '../policies/rules/expression-rules.ts';
import { KINDS, type Kind } from '../policies/rules/requested-affinities.ts';
import {
  and,
  atom,
  type Cel,
  constant,
  dataLiteral,
  every,
  FALSE,
  listOf,
  not,
  or,
  relation,
  some,
  TRUE,
} from './cel.ts';
import {
  allowedBy,
  type ExpressionList,
  everyIn,
  holds,
  IS_NODE_NAME,
  impliedBy,
  nodeAllowedBy,
  nodeImpliedBy,
} from './expression-conditions.ts';
import type { UsablePolicies } from './usable-policies.ts';

const [REQUIRED, PREFERRED] = AFFINITY_TIMES;

export interface Place {
  readonly kind: Kind;
  readonly time: AffinityTime;
}

export const KIND_NAMES = Object.keys(KINDS) as Kind[];
export const PLACES: readonly Place[] = KIND_NAMES.flatMap((kind) =>
  AFFINITY_TIMES.map((time) => ({ kind, time })),
);

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
      (terms) => or(...terms.map((term) => relation(`dyn(t) == ${dataLiteral(term)}`))),
      FALSE,
    );
    return or(isAll, everyTerm(place, isDefault));
  }
  const isAllowed = (list: ExpressionList) =>
    or(
      policies.allows('affinities', (rules) => allowedBy(termsOf(rules, place) ?? [], list)),
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

/** Whether the pod has some affinity of a kind, where one is required at any time. */
export function requiredKindCondition(policies: UsablePolicies, kind: Kind): Cel {
  return or(
    not(isRequiredAtAnyTime(policies, kind)),
    kind === 'nodeAffinity' ? atom('variables.isOfTemplate') : FALSE,
    ...AFFINITY_TIMES.map((time) => relation(`${termsAt({ kind, time })}.size() > 0`)),
  );
}

/** Whether a pod may name this node; `name` is an expression. */
export function nodeCondition(policies: UsablePolicies, name: string): Cel {
  const place: Place = { kind: 'nodeAffinity', time: REQUIRED };
  return or(
    allowsAllAt(policies, place),
    policies.allows('affinities', (rules) => nodeAllowedBy(termsOf(rules, place) ?? [], name)),
    defaultTerms(policies, REQUIRED, (terms) => nodeImpliedBy(terms, name)),
  );
}

/** Whether everything is allowed at one place. */
export function allowsAllAt(policies: UsablePolicies, place: Place): Cel {
  return or(
    policies.allows('affinities', (rules) => constant(termsOf(rules, place)?.length === 0)),
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

/** Whether anything says something about the place. Otherwise not even an empty term is allowed. */
function isMentioned(policies: UsablePolicies, place: Place): Cel {
  return or(
    policies.allows('affinities', (rules) => constant(termsOf(rules, place) !== undefined)),
    isRequired(policies, place),
    isRequiredAtAnyTime(policies, place.kind),
    defaultTerms(policies, place.time, (terms) => constant(terms.length > 0)),
  );
}

function isRequired(policies: UsablePolicies, { kind, time }: Place): Cel {
  return policies.has('required', ['affinities', KINDS[kind], time]);
}

/** A kind is required, but no time. */
function isRequiredAtAnyTime(policies: UsablePolicies, kind: Kind): Cel {
  const times = AFFINITY_TIMES.map((time) => not(isRequired(policies, { kind, time })));
  return and(policies.has('required', ['affinities', KINDS[kind]]), ...times);
}

function requiredTerms(
  policies: UsablePolicies,
  { kind, time }: Place,
  then: (terms: readonly TermRule[]) => Cel,
  otherwise: Cel,
): Cel {
  return policies.first('required', ['affinities', KINDS[kind], time, 'nodeSelectorTerms'], then, otherwise);
}

/** Of affinities to nodes. */
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

/** What a policy allows at a place: an empty list is everything, `undefined` nothing. */
function termsOf(rules: AffinityRules, { kind, time }: Place): readonly TermRule[] | undefined {
  const ofKind = Object.keys(rules).length === 0 ? {} : rules[KINDS[kind]];
  const ofTime: { nodeSelectorTerms?: readonly TermRule[] | undefined } | undefined =
    ofKind !== undefined && Object.keys(ofKind).length === 0 ? {} : ofKind?.[time];
  return ofTime === undefined ? undefined : (ofTime.nodeSelectorTerms ?? []);
}

/** `every` over terms; without any term it holds. */
function everyTerm(place: Place, condition: Cel): Cel {
  const terms = termsAt(place);
  return condition.text === FALSE.text ? relation(`${terms}.size() == 0`) : every(terms, 't', condition);
}
