/** Results of rules for a request: for its decision and for the log. */

import { errorText } from '../base/errors.ts';
import { cut } from '../base/visible-text.ts';
import { BrokenRulesError, type RuleOutcome, type RuleOutcomes } from '../filter/verdict.ts';
import { EvaluationError } from './cel/frame.ts';
import type { Judgement, RuleFailure, Violation } from './judge.ts';

/** Of all messages together, in characters. */
const MAX_REASON = 10_000;

/** All rules that rejected or failed; rejections first. */
export function ruleOutcomes({ violations, failures }: Judgement): RuleOutcomes {
  // Loops here and below: with `flatMap` and spreads, a refusal took longer than its rules.
  const said: RuleOutcome[] = [];
  for (const { rule, message } of violations) {
    said.push({ rule: rule.name, outcome: 'rejected', audit: rule.audit, message });
  }
  for (const { rule } of failures) {
    said.push({ rule: rule.name, outcome: 'failed', audit: rule.audit, message: null });
  }
  return said;
}

/** As `ruleOutcomes`. @throws BrokenRulesError if a rule that is not in audit mode cannot be evaluated: its outcome is unknown */
export function soundOutcomes(judgement: Judgement): RuleOutcomes {
  const said = ruleOutcomes(judgement);
  const broken = judgement.failures.filter(({ rule }) => !rule.audit);
  if (broken.length > 0) {
    throw new BrokenRulesError(broken.map(ruleFailureText).join('; '), said);
  }
  return said;
}

/** For the log: rules that failed, and messages that failed. */
export function brokenIn({ violations, failures }: Judgement): readonly RuleFailure[] {
  const broken = [...failures];
  for (const { unsaid } of violations) {
    if (unsaid !== undefined) {
      broken.push(unsaid);
    }
  }
  return broken;
}

/** The reason for a refusal: the messages of enforced rules in order; `undefined` = none refuses. */
export function reasonOf(violations: readonly Violation[]): string | undefined {
  let reason: string | undefined;
  for (const { rule, message, isInvalidPart } of violations) {
    const isRepeated = isInvalidPart === true && reason?.includes(message) === true;
    if (!rule.audit && !isRepeated) {
      reason = reason === undefined ? message : `${reason} ${message}`;
    }
  }
  return reason === undefined ? undefined : cut(reason, MAX_REASON);
}

const MAX_PART = 60;

/**
 * The failed rule, its position and the cause, for the log. Without values of the request: expressions report
 * only what is missing.
 */
export function ruleFailureText({ rule, part, cause }: RuleFailure): string {
  const { file, line } = rule.place;
  const expression = rule[part];
  const at =
    cause instanceof EvaluationError && typeof expression === 'object'
      ? `: ${JSON.stringify(expression.text.slice(cause.offset, cause.offset + MAX_PART))}`
      : '';
  const why = errorText(cause);
  return `${file}:${line}: rule ${rule.name}: ${part} failed: ${why}${at}`;
}
