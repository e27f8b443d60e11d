/** The rules of `expression-rules.ts` as CEL, about the expression `e` of a term. */

import type { TermRule } from '../policies/documents/policy-schema.ts';
import type { Expression, NodeSelectorTerm } from '../policies/pod.ts';
import { impliedRule, type Rule, rulesIn } from '../policies/rules/expression-rules.ts';
import { NODE_NAME } from '../policies/rules/requested-affinities.ts';
import {
  and,
  atom,
  type Cel,
  choose,
  constant,
  equals,
  every,
  isFalse,
  isOneOf,
  isTrue,
  listOf,
  not,
  or,
  relation,
  TRUE,
} from './cel.ts';

/** The lists of a term. */
export const EXPRESSION_LISTS = ['matchExpressions', 'matchFields'] as const;
export type ExpressionList = (typeof EXPRESSION_LISTS)[number];

/** Whether the terms of a policy allow the expression. An empty term allows everything below it. */
export function allowedBy(terms: readonly TermRule[], list: ExpressionList): Cel {
  const rules = terms.flatMap((term) => rulesIn(Object.keys(term).length === 0 ? [] : term[list]));
  return or(...rules.map(allows));
}

/** Whether the terms of a default imply the expression. */
export function impliedBy(terms: readonly NodeSelectorTerm[], list: ExpressionList): Cel {
  return or(...terms.flatMap((term) => (term[list] ?? []).map(impliedRule)).map(allows));
}

/** Whether the terms of a policy allow naming this node; `name` is an expression. */
export function nodeAllowedBy(terms: readonly TermRule[], name: string): Cel {
  const rules = terms.flatMap((term) => rulesIn(Object.keys(term).length === 0 ? [] : term.matchFields));
  return or(...rules.map((rule) => isNode(rule, name)));
}

export function nodeImpliedBy(terms: readonly NodeSelectorTerm[], name: string): Cel {
  const fields = terms.flatMap((term): readonly Expression[] => term.matchFields ?? []);
  return or(...fields.map(impliedRule).map((rule) => isNode(rule, name)));
}

function isNode({ keys, operators, values }: Rule, name: string): Cel {
  return and(
    constant(keys === undefined || keys.includes(NODE_NAME)),
    constant(operators === undefined || operators.includes('In')),
    values === undefined ? TRUE : isOneOf(name, values),
  );
}

/** See `allows` of the rules. */
export function allows({ keys, operators, values }: Rule): Cel {
  return and(isAbout({ keys, operators, values }), values === undefined ? TRUE : areOneOf(values));
}

/** See `holds` of the rules. */
export function holds(rule: Rule): Cel {
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

function areOneOf(values: readonly string[]): Cel {
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
export function everyIn(list: ExpressionList, condition: Cel): Cel {
  const all = every(`t.${list}`, 'e', condition);
  return isTrue(all)
    ? TRUE
    : or(not(atom(`has(t.${list})`)), isFalse(condition) ? relation(`t.${list}.size() == 0`) : all);
}
