/** Rejects pods that cannot be checked: an HTTP error would admit them with `failurePolicy: Ignore`. */

import { OverloadedError } from '../../base/concurrency-limiter.ts';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { rulesOfFailure } from '../../filter/verdict.ts';
import { message as shown } from '../../kubernetes/admission/admission-messages.ts';
import type { BindingRequest, PodRequest } from '../../kubernetes/admission/admission-review.ts';
import {
  accountOf,
  type DecidedAdmission,
  type PodAdmission,
} from '../../kubernetes/admission/pod-admission.ts';
import { SourceUnavailableError } from '../../kubernetes/policies/access.ts';
import { LimitedLines } from '../refused-requests.ts';

export class FailedReviews {
  readonly #unknown: LimitedLines;
  readonly #faults: LimitedLines;
  readonly #unchecked: LimitedLines;
  readonly #unread: LimitedLines;
  readonly #overloaded: () => void;

  /** `overloaded`: counts a request for which there was no room. */
  constructor(logger: Logger, overloaded: () => void) {
    this.#overloaded = overloaded;
    this.#unknown = new LimitedLines(logger, {
      level: 'warn',
      message: 'the scheduling policies of an account cannot be determined',
      more: 'more pods refused than are logged, because their policies cannot be determined',
    });
    this.#faults = new LimitedLines(logger, {
      level: 'error',
      message: 'review failed',
      more: 'more reviews failed than are logged',
    });
    this.#unchecked = new LimitedLines(logger, {
      level: 'warn',
      message: 'workload not checked',
      more: 'more workloads not checked than are logged',
    });
    this.#unread = new LimitedLines(logger, {
      level: 'warn',
      message: 'a review cannot be read',
      more: 'more reviews that cannot be read than are logged',
    });
  }

  /** The response instead. If all policies are in audit mode, the failure becomes a warning. */
  admission(
    thrown: unknown,
    request: PodRequest | BindingRequest,
    requestId: string,
    { refusesNothing }: PodAdmission,
  ): DecidedAdmission {
    const account = accountOf(request);
    const facts = {
      account,
      patch: [],
      reasons: [],
      tried: [],
      ...(request.pod !== undefined && { pod: request.pod }),
      rules: rulesOfFailure(thrown),
    };
    const { message, failed } = this.failure(thrown, account.user, requestId);
    return refusesNothing
      ? {
          ...facts,
          failed,
          allowed: true,
          message: null,
          isAudited: true,
          warnings: [`scheduling policies in audit mode could not be tried: ${message}`],
        }
      : { ...facts, failed, allowed: false, message, warnings: [], isAudited: false };
  }

  /** A message for the user. The cause is logged. `whose`: an account, or a workload. */
  failure(
    thrown: unknown,
    whose: string,
    request_id: string,
  ): { readonly failed: 500 | 503; readonly message: string } {
    if (thrown instanceof OverloadedError) {
      this.#overloaded();
      return { failed: 503, message: 'too much is being reviewed; try again' };
    }
    const error = causeOf(thrown);
    if (thrown instanceof SourceUnavailableError) {
      this.#unknown.log(() => ({ request_id, error }));
      return {
        failed: 503,
        message: `the scheduling policies of ${whose} cannot be determined now; try again`,
      };
    }
    const stack = thrown instanceof Error ? thrown.stack : undefined;
    this.#faults.log(() => ({ request_id, error, stack }));
    return {
      failed: 500,
      message: `this is a fault of the policy service; its log has the cause under ${request_id}`,
    };
  }

  /** Logs that a workload was not checked, and is not refused. */
  unchecked(thrown: unknown, request_id: string): void {
    this.#unchecked.log(() => ({ request_id, error: causeOf(thrown) }));
  }

  /** A message for the user. `what`: such as `the pod`. */
  unread(why: string, what: string, request_id: string): string {
    this.#unread.log(() => ({ request_id, error: why }));
    return shown(`${what} cannot be judged: ${why}`);
  }

  /** Logs how many lines were suppressed. */
  close(): void {
    this.#unknown.close();
    this.#faults.close();
    this.#unchecked.close();
    this.#unread.close();
  }
}

function causeOf(thrown: unknown): string {
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  return cause === undefined ? errorText(thrown) : `${errorText(thrown)} (${errorText(cause)})`;
}
