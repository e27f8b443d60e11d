/** The outcomes of all filters → the decision that the caller gets, with its warnings. */

import type { Decision, Outcome } from '../filter/verdict.ts';
import type { Lease } from '../lease/lease.ts';

/** Every filter has allowed the lease in this form. */
export function accepted(
  operation: Decision['operation'],
  lease: Lease,
  changed: boolean,
  outcomes: Outcome[],
): Decision {
  return {
    operation,
    allowed: true,
    lease,
    changed,
    message: null,
    filter: null,
    failed: false,
    exempt: false,
    warnings: warningsOf(outcomes),
    outcomes,
  };
}

/** This outcome refuses the lease. The lease is returned unchanged. */
export function refused(
  operation: Decision['operation'],
  lease: Lease,
  { filter, message, failed }: Outcome,
  outcomes: Outcome[],
): Decision {
  return {
    operation,
    allowed: false,
    lease,
    changed: false,
    message,
    filter,
    failed,
    exempt: false,
    warnings: warningsOf(outcomes),
    outcomes,
  };
}

const NO_WARNINGS: readonly string[] = [];

function warningsOf(outcomes: readonly Outcome[]): readonly string[] {
  // Every decision calls this, and most have no warnings.
  return outcomes.some((outcome) => outcome.onError || isTried(outcome))
    ? outcomes.flatMap(outcomeWarning)
    : NO_WARNINGS;
}

function outcomeWarning(outcome: Outcome): string[] {
  if (outcome.onError && !outcome.audit) {
    return [`${outcome.filter} failed, and allowed the lease since its options say so.`];
  }
  return [...auditWarning(outcome), ...ruleWarnings(outcome)];
}

/** Whether the filter, or one of its rules that said no, is tried and not enforced. */
export function isTried({ audit, rules }: Pick<Outcome, 'audit' | 'rules'>): boolean {
  return audit || rules?.some((rule) => rule.audit) === true;
}

/** What rules in audit mode would have done, a sentence for each; nothing for an audited filter, which says it itself. */
export function ruleWarnings({ audit, rules = [] }: Pick<Outcome, 'audit' | 'rules'>): string[] {
  return audit
    ? []
    : rules.flatMap((one) =>
        one.audit
          ? [
              one.outcome === 'failed'
                ? `The rule ${one.rule} (tried, not enforced) failed.`
                : `The rule ${one.rule} (tried, not enforced) would have rejected: ${one.message}`,
            ]
          : [],
      );
}

/** What an audited filter would have done, in a sentence; nothing for an enforced filter. */
export function auditWarning({
  audit,
  filter,
  allowed,
  failed,
  onError,
  message,
  changed,
}: Outcome): string[] {
  if (!audit) {
    return [];
  }
  if (onError) {
    return [`${filter} (tried, not enforced) failed, and would have allowed the lease.`];
  }
  if (failed) {
    return [`${filter} (tried, not enforced) failed.`];
  }
  if (!allowed) {
    return [`${filter} (tried, not enforced) would have rejected: ${message}`];
  }
  return changed ? [`${filter} (tried, not enforced) would have changed the lease.`] : [];
}
