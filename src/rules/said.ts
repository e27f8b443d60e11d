/** What rules said of a request, for its decision. */
import type { RuleOutcome, RuleOutcomes } from '../filter/verdict.ts';
import { cut } from '../visible-text.ts';
import type { Judgement, RuleFailure, Violation } from './judge.ts';
import type { Rule } from './rule.ts';

/** Of all messages, in characters. */
const MAX_REASON = 10_000;

/** Every rule that said no or broke: those that say no first. */
export function saidBy({ violations, failures }: Judgement): RuleOutcomes {
  return [
    ...violations.map(({ rule, message }): RuleOutcome => ({ ...named(rule, 'rejected'), message })),
    ...failures.map(({ rule }): RuleOutcome => ({ ...named(rule, 'failed'), message: null })),
  ];
}

/** What the log is told of a request: rules that broke, and messages that did. */
export function brokenIn({ violations, failures }: Judgement): readonly RuleFailure[] {
  return [...failures, ...violations.flatMap(({ unsaid }) => unsaid ?? [])];
}

/** Why a request is refused: the messages of enforced rules in order; `undefined` = they refuse nothing. */
export function reasonOf(violations: readonly Violation[]): string | undefined {
  const messages = violations.flatMap(({ rule, message }) => (rule.audit ? [] : [message]));
  return messages.length === 0 ? undefined : cut(messages.join(' '), MAX_REASON);
}

function named({ name, audit }: Rule, outcome: RuleOutcome['outcome']) {
  return { rule: name, outcome, audit };
}
