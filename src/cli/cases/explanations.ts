/** The answers of rules to a request, with reasons, for display. */

import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { valueAt } from '../../base/yaml/tree.ts';
import type { ObservedRule, RuleAnswer, RuleExplanation, RuleObserver } from '../../filter/services.ts';

export interface ExplainedRule {
  readonly rule: string;
  readonly said: RuleAnswer;
  readonly audit: boolean;
  readonly file: string;
  readonly line: number;
  readonly explanations: readonly RuleExplanation[];
}

/** Filters are called again when another filter changes the lease: the last answer of a rule counts. */
export class ExplainedRules implements RuleObserver {
  readonly #rules = new Map<string, ExplainedRule>();

  rulesRead(): void {}

  ruleJudged(
    { name, audit, place }: Parameters<RuleObserver['ruleJudged']>[0],
    said: RuleAnswer,
    explain: () => readonly RuleExplanation[],
  ): void {
    const key = `${place.file}:${place.line}`;
    this.#rules.set(key, { rule: name, said, audit, ...place, explanations: explain() });
  }

  /** The rules since the last call, in order. */
  take(): ExplainedRule[] {
    const taken = [...this.#rules.values()];
    this.#rules.clear();
    return taken;
  }
}

/** Collects the enforced rules that refuse a request, each once. */
export class RefusingRules implements RuleObserver {
  readonly rules: ObservedRule[] = [];

  rulesRead(): void {}

  ruleJudged(rule: ObservedRule, said: RuleAnswer): void {
    if (said === 'refused' && !rule.audit && !this.rules.includes(rule)) {
      this.rules.push(rule);
    }
  }
}

/** `hours(lease) = 72`, then the whole expression: `hours(lease) <= 48.0 → false`. */
export function explanationLines({ said, explanations }: ExplainedRule): string[] {
  return explanations
    .filter(isReason(said))
    .flatMap(({ of, parts }) =>
      parts.map(({ text, value }, index) =>
        index === parts.length - 1 ? `${of}: ${text} → ${value}` : `${of}: ${text} = ${value}`,
      ),
    );
}

/** A skipped rule has not evaluated `allow`; if its `match` is true, it has ended or the user is exempt. */
function isReason(said: RuleAnswer): (one: RuleExplanation) => boolean {
  return ({ of, parts }) => said !== 'skipped' || (of === 'match' && parts.at(-1)?.value === 'false');
}

/** Collects the causes of failed filters and policies, which users do not see. */
export function causeLogger(causes: string[]): Logger {
  const ignore = () => {};
  const error = (fields: unknown) => {
    const cause = valueAt(fields, ['error']);
    if (cause !== undefined) {
      causes.push(errorText(cause));
    }
  };
  return { debug: ignore, info: ignore, warn: ignore, error } as unknown as Logger;
}
