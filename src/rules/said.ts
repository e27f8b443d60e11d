/** What rules said of a request: for its decision, and for the log. */

import { cut } from '../base/visible-text.ts';
import { BrokenRulesError, type RuleOutcome, type RuleOutcomes } from '../filter/verdict.ts';
import { EvaluationError } from './cel/frame.ts';
import type { Judgement, RuleFailure, Violation } from './judge.ts';

/** Of all messages, in characters. */
const MAX_REASON = 10_000;

/** Every rule that said no or broke: those that say no first. */
export function saidBy({ violations, failures }: Judgement): RuleOutcomes {
  // Loops here and below: a refusal took longer in `flatMap` and spreads than in its rules.
  const said: RuleOutcome[] = [];
  for (const { rule, message } of violations) {
    said.push({ rule: rule.name, outcome: 'rejected', audit: rule.audit, message });
  }
  for (const { rule } of failures) {
    said.push({ rule: rule.name, outcome: 'failed', audit: rule.audit, message: null });
  }
  return said;
}

/** The same. @throws BrokenRulesError if one that is not in audit mode cannot be evaluated: nobody knows what it would have said */
export function soundOutcomes(judgement: Judgement): RuleOutcomes {
  const said = saidBy(judgement);
  const broken = judgement.failures.filter(({ rule }) => !rule.audit);
  if (broken.length > 0) {
    throw new BrokenRulesError(broken.map(ruleFailureText).join('; '), said);
  }
  return said;
}

/** What the log is told of a request: rules that broke, and messages that did. */
export function brokenIn({ violations, failures }: Judgement): readonly RuleFailure[] {
  const broken = [...failures];
  for (const { unsaid } of violations) {
    if (unsaid !== undefined) {
      broken.push(unsaid);
    }
  }
  return broken;
}

/** Why a request is refused: the messages of enforced rules in order; `undefined` = they refuse nothing. */
export function reasonOf(violations: readonly Violation[]): string | undefined {
  let reason: string | undefined;
  for (const { rule, message } of violations) {
    if (!rule.audit) {
      reason = reason === undefined ? message : `${reason} ${message}`;
    }
  }
  return reason === undefined ? undefined : cut(reason, MAX_REASON);
}

const MAX_PART = 60;

/** Which rule failed, where, and why, for the log. It has no values of the request: an expression says what is missing, never what is there. */
export function ruleFailureText({ rule, part, cause }: RuleFailure): string {
  const { file, line } = rule.place;
  const expression = rule[part];
  const at =
    cause instanceof EvaluationError && typeof expression === 'object'
      ? `: ${JSON.stringify(expression.text.slice(cause.offset, cause.offset + MAX_PART))}`
      : '';
  const why = cause instanceof Error ? cause.message : String(cause);
  return `${file}:${line}: rule ${rule.name}: ${part} failed: ${why}${at}`;
}
