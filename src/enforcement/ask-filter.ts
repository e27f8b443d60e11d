/** One filter asked, or told, one thing: whatever goes wrong is a failure, and the failure of a check is a rejection. */

import { inTime, type Wait, waitFor } from '../deadline.ts';
import { errorText, LedgerUnavailableError } from '../errors.ts';
import type { BaseFilter } from '../filter/base-filter.ts';
import type { Call } from '../filter/services.ts';
import { type Decision, isVerdict, type Outcome, reject, type Verdict } from '../filter/verdict.ts';
import type { Context, CreateRequest, EndRequest, Lease, UpdateRequest } from '../lease/lease.ts';
import { parseCreateRequest, parseUpdateRequest } from '../lease/parse-request.ts';
import { readOnly, withoutViews } from '../lease/read-only.ts';
import type { Logger } from '../logger.ts';
import type { Link } from './chain.ts';
import type { CheckOptions } from './check-options.ts';
import { auditWarning } from './decision.ts';
import { RequestCall } from './request-call.ts';

export const FAILED_MESSAGE = 'The lease could not be checked. Please try again later, or ask the operator.';

export const UNAVAILABLE_MESSAGE =
  'The ledger of leases can not be read or written at the moment. Please try again later, or ask the operator.';

/** What a request is about, for the log. */
export interface Subject {
  readonly operation: Decision['operation'] | 'end';
  readonly context: Context;
  readonly requestId: string | undefined;
  readonly lease: Lease;
  /** Of an update: the lease before it. */
  readonly currentLease?: Lease;
}

/** What the filters are asked, one by one. */
export interface Question extends Subject {
  readonly operation: Decision['operation'];
  readonly wait: Wait;
  /** What every filter is told besides the request: one object for each request. */
  readonly call: Call;
  readonly ask: (filter: BaseFilter, lease: Lease, call: Call) => unknown;
  /** Throws if a lease, as a filter has changed it, can't be judged. */
  readonly verify: (changed: Lease) => unknown;
}

/** One filter's verdict; `failed` when it is ours, since the filter had none. */
export interface Answer {
  readonly verdict: Verdict;
  readonly failed: boolean;
}

/** How long to wait, and what stands in the log. */
type Asked = Pick<CheckOptions, 'signal' | 'deadline' | 'requestId' | 'idempotencyKey'>;

export function creating(
  { context, lease }: CreateRequest,
  operation: Decision['operation'],
  { signal, deadline, requestId, idempotencyKey }: Asked,
): Question {
  const seen = readOnly(context);
  const wait = deadline ?? waitFor(signal);
  return {
    operation,
    context,
    requestId,
    lease,
    wait,
    call: new RequestCall(wait, idempotencyKey, [context, lease]),
    ask: (filter, proposed, call) => filter.checkCreate(seen, proposed, call),
    verify: (changed) => parseCreateRequest({ context, lease: changed }),
  };
}

export function updating(
  { context, currentLease, lease }: UpdateRequest,
  operation: Decision['operation'],
  { signal, deadline, requestId, idempotencyKey }: Asked,
): Question {
  const seen = readOnly(context);
  const current = readOnly(currentLease);
  const wait = deadline ?? waitFor(signal);
  return {
    operation,
    context,
    requestId,
    lease,
    currentLease,
    wait,
    call: new RequestCall(wait, idempotencyKey, [context, lease, currentLease]),
    ask: (filter, proposed, call) => filter.checkUpdate(seen, current, proposed, call),
    verify: (changed) => parseUpdateRequest({ context, currentLease, lease: changed }),
  };
}

/** One filter's verdict on a lease. A promise only where the filter takes its time. */
export function askFilter(
  link: Link,
  lease: Lease,
  question: Question,
  logger: Logger,
): Answer | Promise<Answer> {
  const { wait, call, ask, verify } = question;
  const { turn } = link;
  const failure = (thrown: unknown): Answer => {
    logFailure(logger, link.name, question, thrown);
    return { verdict: reject(failureMessage(thrown)), failed: true };
  };
  try {
    wait.throwIfOver();
    turn.begin();
    const answer = ask(link.filter, lease, call);
    turn.end();
    if (isThenable(answer)) {
      return inTime(answer, wait)
        .then((late) => verified(late, verify))
        .catch(failure);
    }
    wait.throwIfOver();
    return verified(answer, verify);
  } catch (thrown) {
    return failure(thrown);
  }
}

/** Tells one filter of an end. One that can't be told keeps no other from hearing it. */
export async function tellOfEnd(
  { name, filter, audit, turn }: Link,
  { context, lease }: EndRequest,
  { requestId, wait, call }: Pick<Question, 'requestId' | 'wait' | 'call'>,
  logger: Logger,
): Promise<Outcome> {
  const started = performance.now();
  let failed = false;
  try {
    turn.begin();
    const told = filter.onEnd(context, lease, call);
    turn.end();
    if (isThenable(told)) {
      await inTime(told, wait);
    }
  } catch (thrown) {
    failed = true;
    logFailure(logger, name, { operation: 'end', context, requestId, lease }, thrown);
  }
  return {
    filter: name,
    allowed: !failed,
    message: failed ? `${name} could not be told that the lease has ended.` : null,
    failed,
    onError: false,
    audit,
    changed: false,
    milliseconds: performance.now() - started,
  };
}

/** What the user reads of a failure: that something is broken, and nothing of what. */
export function failureMessage(thrown: unknown): string {
  return thrown instanceof LedgerUnavailableError ? UNAVAILABLE_MESSAGE : FAILED_MESSAGE;
}

export function logFailure(logger: Logger, filter: string, subject: Subject, thrown: unknown): void {
  logger.error({ ...logFields(filter, subject), error: errorText(thrown) }, 'filter failed');
  if (thrown instanceof Error) {
    logger.debug({ filter, stack: thrown.stack }, 'filter failed');
  }
}

/** Logs what an audited filter would have done; nothing for one that is enforced, or that allowed the lease. */
export function logAudit(logger: Logger, subject: Subject, outcome: Outcome): void {
  for (const warning of auditWarning(outcome)) {
    logger.warn(logFields(outcome.filter, subject), warning);
  }
}

/** Blazar's names have 80 characters. */
const MAX_LOGGED_NAME = 255;

/** Says which filter and which request a line of the log is about. */
function logFields(filter: string, { operation, context, requestId, lease, currentLease }: Subject) {
  const { project_id, user_id } = context;
  const request = requestId === undefined ? {} : { request_id: requestId };
  return {
    ...{ ...request, operation, filter, project_id, user_id },
    ...namedField('lease_id', lease.id ?? currentLease?.id),
    ...namedField('lease_name', lease.name ?? currentLease?.name),
  };
}

/** Blazar knows no id of a lease that is about to be created; anything but a text is no name. */
function namedField(field: string, value: unknown): Readonly<Record<string, string>> {
  return typeof value === 'string' ? { [field]: value.slice(0, MAX_LOGGED_NAME) } : {};
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** What a hook returned, as a verdict on a lease that can be judged. Throws for anything else. */
function verified(answer: unknown, verify: Question['verify']): Answer {
  if (!isVerdict(answer)) {
    throw new TypeError('expected allow(), allow(lease) or reject(message) as the answer');
  }
  if (!answer.allowed || answer.lease === undefined) {
    return { verdict: answer, failed: false };
  }
  const lease = withoutViews(answer.lease);
  verify(lease);
  return { verdict: { ...answer, lease }, failed: false };
}
