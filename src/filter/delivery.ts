/** What became of a message that was posted to another service, for the outbox. */
import { errorText } from '../base/errors.ts';
import { HttpCallError } from '../http/call-error.ts';
import type { HttpAnswer } from '../http/contract.ts';
import type { Delivery } from './outbox.ts';

/** Ask for this header of the answer: `deliveryOf` reads it. */
export const RETRY_AFTER = 'retry-after';

/**
 * Posts a message. `mistakeIn`: what is wrong with an answer; `undefined` = the message is delivered. By default it is with `204`, and
 * nothing else: the sender of any other answer may not have understood it. Never throws.
 */
export async function deliveryOf(
  post: () => Promise<HttpAnswer>,
  mistakeIn: (answer: HttpAnswer) => string | undefined = noContent,
): Promise<Delivery> {
  try {
    const answer = await post();
    const { status, headers } = answer;
    const error = mistakeIn(answer);
    if (error === undefined) {
      return { outcome: 'delivered' };
    }
    return status === 429 || status === 503
      ? { outcome: 'away', error, retryAfter: secondsOf(headers?.[RETRY_AFTER]) }
      : { outcome: 'refused', error };
  } catch (thrown) {
    return { outcome: outcomeOf(thrown), error: errorText(thrown) };
  }
}

function noContent({ status }: HttpAnswer): string | undefined {
  return status === 204 ? undefined : `expected 204 from the external service, got ${status}`;
}

function outcomeOf(thrown: unknown): 'away' | 'refused' | 'not-sent' {
  switch (thrown instanceof HttpCallError ? thrown.code : undefined) {
    case 'connect':
      return 'away';
    case 'breaker-open':
    case 'aborted':
    case 'closed':
      return 'not-sent';
    default:
      return 'refused';
  }
}

/** A number of seconds, or a date. Source: RFC 9110, "Retry-After". */
function secondsOf(text: string | undefined): number | undefined {
  if (text === undefined) {
    return undefined;
  }
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return seconds > 0 ? seconds : undefined;
}
