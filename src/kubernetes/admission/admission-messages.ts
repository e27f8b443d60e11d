/** Messages about pods that scheduling policies do not allow, for users. */
import { cut, visibleText } from '../../base/visible-text.ts';
import type { RuleOutcomes } from '../../filter/verdict.ts';
import type { Account } from '../policies/access.ts';
import { formatReason, type Reason } from '../policies/rules/reason.ts';

/** In characters. The API server truncates longer ones. Source: Kubernetes docs, "Dynamic Admission Control". */
const MAX_WARNING = 256;
const MAX_WARNINGS = 10;
const MAX_MESSAGE = 2000;
/** Keeps messages within `MAX_MESSAGE`. */
const MAX_REASONS = 50;

/** For the message of a refusal. */
export function message(text: string): string {
  return cut(visibleText(text), MAX_MESSAGE);
}

/** `fitsNot`: such as `the pod does not fit`. */
export function refusal(fitsNot: string, { user }: Account, reasons: readonly Reason[]): string {
  const shown = reasons.slice(0, MAX_REASONS).map(formatReason).join('; ');
  return message(`${fitsNot} the scheduling policies of ${user}: ${shown}`);
}

/** One warning per reason, each after the same words. */
export function warningsFor(words: string, reasons: readonly Reason[]): string[] {
  return reasons.slice(0, MAX_WARNINGS).map((reason) => warning(`${words}: ${formatReason(reason)}`));
}

/** The API server drops a warning with control characters, and reports an error instead. */
export function warning(text: string): string {
  return cut(visibleText(text), MAX_WARNING);
}

/** For policies in audit mode. `what`: such as `this pod`. */
export function auditWords(what: string): string {
  return `a scheduling policy in audit mode would reject ${what}`;
}

export function messagesOf(rules: RuleOutcomes): string[] {
  return rules.flatMap(({ audit, message: said }) => (audit || said === null ? [] : [said]));
}

/** What rules in audit mode would have done. `what`: such as `this pod`. */
export function triedRules(what: string, rules: RuleOutcomes): string[] {
  return rules
    .filter(({ audit }) => audit)
    .slice(0, MAX_WARNINGS)
    .map(({ rule, message: said }) =>
      warning(
        said === null
          ? `a rule in audit mode could not judge ${what}: rule ${rule} failed`
          : `a rule in audit mode would reject ${what}: rule ${rule}: ${said}`,
      ),
    );
}
