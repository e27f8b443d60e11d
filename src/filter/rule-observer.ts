/** Receives what rules say of requests, for tests of rules. It must not throw. */
export interface RuleObserver {
  /** Once, before any request: every rule for leases that the configuration has, in order. */
  rulesRead(rules: readonly ObservedRule[]): void;
  /** `explain`: evaluates the rule once more. Call it before the request has been answered. */
  ruleJudged(rule: ObservedRule, said: RuleAnswer, explain: () => readonly RuleExplanation[]): void;
}

export interface ObservedRule {
  readonly name: string;
  readonly audit: boolean;
  readonly place: { readonly file: string; readonly line: number };
}

/**
 * - `allowed`, `refused`: it judged the request
 * - `skipped`: it does not apply: it has ended, somebody is exempt, or `match` is false
 * - `failed`: it could not be evaluated
 */
export type RuleAnswer = 'allowed' | 'refused' | 'skipped' | 'failed';

/** One of the two expressions of a rule, for people. */
export interface RuleExplanation {
  readonly of: 'match' | 'allow';
  /** Each part that was evaluated, and its value; the whole expression last. Short texts without secrets. */
  readonly parts: readonly { readonly text: string; readonly value: string }[];
}
