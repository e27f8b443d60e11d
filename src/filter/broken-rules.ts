import { areRules, type RuleOutcomes } from './verdict.ts';

/**
 * Rules broke, so that nobody can judge: the request is refused as after any other failure, and the decision names the rules. The message
 * is for the log.
 */
export class BrokenRulesError extends Error {
  override readonly name = 'BrokenRulesError';
  /** What was said before the request was refused, the broken rules among them. */
  readonly rules: RuleOutcomes;

  constructor(message: string, rules: RuleOutcomes) {
    super(message);
    this.rules = rules;
  }
}

/** What rules had said when something was thrown, in this thread or another; `undefined` = it was not thrown because of rules. */
export function rulesOfFailure(thrown: unknown): RuleOutcomes | undefined {
  return thrown instanceof Error && 'rules' in thrown && areRules(thrown.rules) ? thrown.rules : undefined;
}
