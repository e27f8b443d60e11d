/** Outcomes → what the caller gets: the decision, its warnings, and the words for a change that it can't take. */

import type { Decision, Outcome } from '../filter/verdict.ts';
import type { Lease } from '../lease/lease.ts';

/** More than this nobody types into a request. */
const MAX_NAMED_CHANGES = 20;
/** Longer than this nobody types a value. */
const MAX_VALUE = 10_000;

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
export function describeChanges(from: Lease, to: Lease): string {
  const named: string[] = [];
  let others = 0;
  for (const { path, value } of differences([], from, to)) {
    if (named.length < MAX_NAMED_CHANGES) {
      const name = path.join('/');
      named.push(value === undefined ? `without ${name}` : `${name} = ${shown(value)}`);
    } else {
      others += 1;
    }
  }
  return `${named.join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}

interface Difference {
  readonly path: readonly string[];
  /** `undefined` = it is not there any more. */
  readonly value: unknown;
}

/** What a filter has left as it was it has not copied, as a rule: most of a long lease is not walked through. */
function* differences(path: readonly string[], from: unknown, to: unknown): Generator<Difference> {
  if (Object.is(from, to)) {
    return;
  }
  if (!isTree(from) || !isTree(to) || Array.isArray(from) !== Array.isArray(to)) {
    // A date may be an object, of which there are equal ones.
    if (JSON.stringify(from) !== JSON.stringify(to)) {
      yield { path, value: to };
    }
    return;
  }
  for (const name of Object.keys({ ...from, ...to })) {
    const [before, after] = [from, to].map((tree) => (Object.hasOwn(tree, name) ? tree[name] : undefined));
    yield* differences([...path, name], before, after);
  }
}

/** A list, or an object that is no value by itself as a date is. */
function isTree(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' && value !== null && !('toJSON' in value && typeof value.toJSON === 'function')
  );
}

function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}
