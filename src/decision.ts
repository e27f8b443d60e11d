/** Outcomes → what the caller gets: the decision, its warnings, and the words for a change that it can't take. */
import type { Lease } from './lease.ts';
import type { Decision, Outcome } from './verdict.ts';

/** More than this nobody types into a request. */
const MAX_NAMED_CHANGES = 20;

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

/** The lease as it came is refused, by this outcome. */
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
  // Nearly always there are none, and this is asked of every decision.
  return outcomes.some(({ audit, onError }) => audit || onError)
    ? outcomes.flatMap(outcomeWarning)
    : NO_WARNINGS;
}

function outcomeWarning(outcome: Outcome): string[] {
  if (outcome.onError && !outcome.audit) {
    return [`${outcome.filter} failed, and allowed the lease since its options say so.`];
  }
  return auditWarning(outcome);
}

/** What an audited filter would have done, in a sentence; nothing for one that is enforced. */
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

/** `end_date = "2026-12-02T09:00:00", reservations/0/max = 1`: what a user has to change in a request. */
export async function describeChanges(from: Lease, to: Lease): Promise<string> {
  const { default: jsonPatch } = await import('fast-json-patch');
  const plain = (lease: Lease) => JSON.parse(JSON.stringify(lease)) as object;
  const changes = jsonPatch.compare(plain(from), plain(to));
  const named = changes.slice(0, MAX_NAMED_CHANGES).map((change) => {
    const name = change.path.slice(1).replaceAll('~1', '/').replaceAll('~0', '~');
    return 'value' in change ? `${name} = ${JSON.stringify(change.value)}` : `without ${name}`;
  });
  const rest = changes.length - named.length;
  return `${named.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}
