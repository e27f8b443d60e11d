import { EvaluationError } from './cel/failure.ts';
import type { RuleFailure } from './judge.ts';

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
