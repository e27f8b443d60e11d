/** What rules said of a request, for its decision. */

import { cut } from '../base/visible-text.ts';
import type { RuleOutcome, RuleOutcomes } from '../filter/verdict.ts';
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
