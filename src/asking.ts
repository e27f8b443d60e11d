/** One filter asked one thing: whatever goes wrong is a failure, and a failure is a rejection. */
import type { BaseFilter, Call } from './base-filter.ts';
import type { Link } from './chain.ts';
import { inTime, type Wait } from './deadline.ts';
import { errorText } from './errors.ts';
import type { Context, Lease } from './lease.ts';
import { LedgerUnavailableError, UNAVAILABLE_MESSAGE } from './ledger/database.ts';
import type { Logger } from './logger.ts';
import { withoutViews } from './read-only.ts';
import type { Decision } from './verdict.ts';
import { isVerdict, reject, type Verdict } from './verdict.ts';

export const FAILED_MESSAGE = 'The lease could not be checked. Please try again later, or ask the operator.';

/** What a request is about, for the log. */
export interface Subject {
  readonly operation: Decision['operation'] | 'end';
  readonly context: Context;
  readonly requestId: string | undefined;
}

/** What the filters are asked, one by one. */
export interface Question extends Subject {
  readonly operation: Decision['operation'];
  readonly wait: Wait;
  readonly ask: (filter: BaseFilter, lease: Lease, call: Call) => unknown;
  /** Throws if a lease, as a filter has changed it, can't be judged. */
  readonly verify: (changed: Lease) => unknown;
}

/** One filter's verdict; `failed` when it is ours, since the filter had none. */
export interface Answer {
  readonly verdict: Verdict;
  readonly failed: boolean;
}

/** One filter's verdict on a lease. A promise only where the filter takes its time. */
export function askFilter(
  link: Link,
  lease: Lease,
  question: Question,
  logger: Logger,
): Answer | Promise<Answer> {
  const { wait, ask, verify } = question;
  const failure = (thrown: unknown): Answer => {
    logFailure(logger, link.name, question, thrown);
    return { verdict: reject(failureMessage(thrown)), failed: true };
  };
  try {
    wait.throwIfOver();
    const answer = ask(link.filter, lease, wait);
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

/** What the user reads of a failure: that something is broken, and nothing of what. */
export function failureMessage(thrown: unknown): string {
  return thrown instanceof LedgerUnavailableError ? UNAVAILABLE_MESSAGE : FAILED_MESSAGE;
}

export function logFailure(
  logger: Logger,
  filter: string,
  { operation, context, requestId }: Subject,
  thrown: unknown,
): void {
  const { project_id, user_id } = context;
  const request = requestId === undefined ? {} : { request_id: requestId };
  const error = errorText(thrown);
  logger.error({ ...request, operation, filter, project_id, user_id, error }, 'filter failed');
  if (thrown instanceof Error) {
    logger.debug({ filter, stack: thrown.stack }, 'filter failed');
  }
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
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
