/** Texts about the filters of a chain, for users, operators and the log: failures, warnings, changes of a lease. */
import { errorText, isInstance, LedgerUnavailableError, stackOf } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { type Decision, type Outcome, type Rejection, reject, rulesOfFailure } from '../../filter/verdict.ts';
import type { Context, Lease } from '../../lease/lease.ts';

/* Failures: the message for the user if a filter, or the ledger, fails. The cause is only in the log. */

export const FAILED_MESSAGE = 'The lease could not be checked. Please try again later, or ask the operator.';

export const UNAVAILABLE_MESSAGE =
  'The ledger of leases cannot be read or written at the moment. Please try again later, or ask the operator.';

export function failureMessage(thrown: unknown): string {
  return isInstance(thrown, LedgerUnavailableError) ? UNAVAILABLE_MESSAGE : FAILED_MESSAGE;
}

/** The refusal after a failure, with the names of rules that failed. */
export function failureVerdict(thrown: unknown): Rejection {
  const rules = rulesOfFailure(thrown);
  return { ...reject(failureMessage(thrown)), ...(rules && { rules }) };
}

const MAX_SHOWN_TEXT = 40;

/** A value that is not a verdict, for the log. For an object only its attribute names: the values may be anything. */
export function shownAnswer(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > MAX_SHOWN_TEXT ? `${value.slice(0, MAX_SHOWN_TEXT)}…` : value);
  }
  if (typeof value !== 'object' || value === null) {
    return typeof value === 'function' ? 'a function' : String(value);
  }
  if (Array.isArray(value)) {
    return 'a list';
  }
  if ('allowed' in value && value.allowed === false) {
    return 'a rejection without a message';
  }
  const names = Object.keys(value).slice(0, 5).join(', ');
  return names === '' ? 'an object without attributes' : `an object with ${names}`.slice(0, 200);
}

/* Log lines: each names the filter and the request. */

export interface LoggedRequest {
  readonly operation: Decision['operation'] | 'end';
  readonly context: Context;
  readonly requestId: string | undefined;
  readonly lease: Lease;
  /** The lease before an update. */
  readonly currentLease?: Lease;
}

export function logFailure(logger: Logger, filter: string, request: LoggedRequest, thrown: unknown): void {
  logger.error({ ...fieldsOf(filter, request), error: errorText(thrown) }, 'filter failed');
  const stack = stackOf(thrown);
  if (stack !== undefined) {
    logger.debug({ filter, stack }, 'filter failed');
  }
}

/**
 * Logs what an audited filter, or a rule in audit mode, would have done. Logs nothing for enforced ones, and
 * for allowed leases.
 */
export function logAudit(logger: Logger, request: LoggedRequest, outcome: Outcome): void {
  for (const warning of [...auditWarning(outcome), ...ruleWarnings(outcome)]) {
    logger.warn(fieldsOf(outcome.filter, request), warning);
  }
}

/** In characters. Blazar's names have at most 80. */
const MAX_LOGGED_NAME = 255;

function fieldsOf(filter: string, { operation, context, requestId, lease, currentLease }: LoggedRequest) {
  const { project_id, user_id } = context;
  return {
    ...(requestId === undefined ? {} : { request_id: requestId }),
    operation,
    filter,
    project_id,
    user_id,
    ...textField('lease_id', lease.id ?? currentLease?.id),
    ...textField('lease_name', lease.name ?? currentLease?.name),
  };
}

/** A field if the value is a text: a new lease has no id, and its name may be anything. */
function textField(name: string, value: unknown): Readonly<Record<string, string>> {
  return typeof value === 'string' ? { [name]: value.slice(0, MAX_LOGGED_NAME) } : {};
}

/* Warnings of decisions. */

/** What the operator should know about an outcome, one sentence each. */
export function outcomeWarnings(outcome: Outcome): string[] {
  if (outcome.onError && !outcome.audit) {
    return [`${outcome.filter} failed, and allowed the lease since its options say so.`];
  }
  return [...auditWarning(outcome), ...ruleWarnings(outcome)];
}

/** What rules in audit mode would have done, one sentence per rule; none for an audited filter, which has its own. */
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

/** What an audited filter would have done, in one sentence; nothing for an enforced filter. */
function auditWarning({ audit, filter, allowed, failed, onError, message, changed }: Outcome): string[] {
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

/* The differences between two leases, as text for the user. */

/** No more values than a user can reasonably set by hand. */
const MAX_NAMED_CHANGES = 20;
/** In characters. Longer values are cut. */
const MAX_VALUE = 10_000;

/** `end_date = "2026-12-02T09:00:00", reservations/0/max = 1`: the values to change in a request. */
export function describeChanges(from: Lease, to: Lease): string {
  const named: string[] = [];
  let others = 0;
  for (const { path, value } of differences([], from, to)) {
    if (named.length < MAX_NAMED_CHANGES) {
      const name = path.join('/');
      named.push(value === undefined ? `without ${name}` : `${name} = ${shownValue(value)}`);
    } else {
      others += 1;
    }
  }
  return `${named.join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}

interface Difference {
  readonly path: readonly string[];
  /** `undefined` = it was removed. */
  readonly value: unknown;
}

/** Skips parts that a filter has not copied, usually most of a long lease. */
function* differences(path: readonly string[], from: unknown, to: unknown): Generator<Difference> {
  if (Object.is(from, to)) {
    return;
  }
  if (!isTree(from) || !isTree(to) || Array.isArray(from) !== Array.isArray(to)) {
    // Two date objects may be equal.
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

/** A list, or an object that is not a value such as a date. */
function isTree(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' && value !== null && !('toJSON' in value && typeof value.toJSON === 'function')
  );
}

function shownValue(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}
