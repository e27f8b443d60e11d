/** What a user reads if a filter, or the ledger, is broken. The cause is only in the log. */
import { LedgerUnavailableError } from '../errors.ts';
import { rulesOfFailure } from '../filter/broken-rules.ts';
import { type Rejection, reject } from '../filter/verdict.ts';

export const FAILED_MESSAGE = 'The lease could not be checked. Please try again later, or ask the operator.';

export const UNAVAILABLE_MESSAGE =
  'The ledger of leases can not be read or written at the moment. Please try again later, or ask the operator.';

export function failureMessage(thrown: unknown): string {
  return thrown instanceof LedgerUnavailableError ? UNAVAILABLE_MESSAGE : FAILED_MESSAGE;
}

/** The refusal after a failure; it names the rules that broke. */
export function failureVerdict(thrown: unknown): Rejection {
  const rules = rulesOfFailure(thrown);
  return { ...reject(failureMessage(thrown)), ...(rules && { rules }) };
}
