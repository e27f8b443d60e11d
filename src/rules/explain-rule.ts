/** Why a rule says what it says: every part of its expressions, with its value. */

import { onOneLine } from '../base/visible-text.ts';
import type { RuleExplanation } from '../filter/rule-observer.ts';
import type { Activation, ExplainedPart, Expression } from './expression.ts';
import type { Rule } from './rule.ts';
import { cut, shownValue } from './shown-value.ts';

/** Of each expression. */
const MAX_PARTS = 40;

/** Evaluates the expressions of a rule once more. */
export function explainRule({ match, allow }: Rule, activation: Activation): RuleExplanation[] {
  return [
    ...(match === undefined ? [] : [explained('match', match, activation)]),
    explained('allow', allow, activation),
  ];
}

function explained(
  of: RuleExplanation['of'],
  expression: Expression,
  activation: Activation,
): RuleExplanation {
  const parts = partsOf(expression, activation).flatMap(({ text, value, failure }) => {
    const shown = failure === undefined ? shownValue(value, text) : `fails: ${cut(onOneLine(failure))}`;
    return shown === undefined ? [] : [{ text: cut(onOneLine(text)), value: shown }];
  });
  // The whole expression is the last part.
  return { of, parts: parts.slice(-MAX_PARTS) };
}

/** None for a request that is too large: the judgement says so. */
function partsOf(expression: Expression, activation: Activation): readonly ExplainedPart[] {
  try {
    return expression.explain(activation);
  } catch {
    return [];
  }
}
