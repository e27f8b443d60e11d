/** Rejects pods that cannot be checked: an HTTP error would admit them with `failurePolicy: Ignore`. */

import { OverloadedError } from '../../base/concurrency-limiter.ts';
import { causeOf, errorText, stackOf } from '../../base/errors.ts';
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

export class FailedReviews {
  readonly #logger: Logger;
  readonly #overloaded: () => void;

  /** `overloaded`: counts a request for which there was no room. */
  constructor(logger: Logger, overloaded: () => void) {
    this.#logger = logger;
    this.#overloaded = overloaded;
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
    const error = causesText(thrown);
    if (thrown instanceof SourceUnavailableError) {
      this.#logger.warn({ request_id, error }, 'the scheduling policies of an account cannot be determined');
      return {
        failed: 503,
        message: `the scheduling policies of ${whose} cannot be determined now; try again`,
      };
    }
    this.#logger.error({ request_id, error, stack: stackOf(thrown) }, 'review failed');
    return {
      failed: 500,
      message: `this is a fault of the policy service; its log has the cause under ${request_id}`,
    };
  }

  /** Logs that a workload was not checked, and is not refused. */
  unchecked(thrown: unknown, request_id: string): void {
    this.#logger.warn({ request_id, error: causesText(thrown) }, 'workload not checked');
  }

  /** A message for the user. `what`: such as `the pod`. */
  unread(why: string, what: string, request_id: string): string {
    this.#logger.warn({ request_id, error: why }, 'a review cannot be read');
    return shown(`${what} cannot be judged: ${why}`);
  }
}

function causesText(thrown: unknown): string {
  const cause = causeOf(thrown);
  return cause === undefined ? errorText(thrown) : `${errorText(thrown)} (${errorText(cause)})`;
}
