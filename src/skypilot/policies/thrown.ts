/** What policies throw, as texts: anything can be thrown, and it may be hostile to whoever looks at it. */
import { NoAnswerError } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import { isRejection } from '../admin-policy.ts';

/** Maximum length of a text, in characters. More than is shown: see `policy-failures.ts`. */
export const MAX_TEXT = 17_000;
/** Maximum number of errors in a chain of causes, and of errors of one `AggregateError`. */
const MAX_CAUSES = 8;

/**
 * Whether users may read the message: a `PolicyRejected`, or an error with `expose = true`, as those that `http-errors` makes for
 * status codes below 500.
 */
export function isMeantForUsers(thrown: unknown): thrown is Error {
  try {
    return isRejection(thrown) || (thrown instanceof Error && 'expose' in thrown && thrown.expose === true);
  } catch {
    return false;
  }
}

/** The message of anything, followed by those of its causes: `no registry: fetch failed: connect ECONNREFUSED`. */
export function causeText(thrown: unknown): string {
  const [first = '', ...causes] = causesOf(thrown).map(messageOf);
  let text = first;
  for (const cause of causes) {
    // A wrapper often repeats the message of its cause.
    text = text.includes(cause) ? text : `${text}: ${cause}`;
  }
  return text.slice(0, MAX_TEXT);
}

/** The stack of an error, followed by those of its causes; `undefined` if there is none. */
export function stackText(thrown: unknown): string | undefined {
  const stacks = causesOf(thrown).map(stackOf);
  const text = stacks.filter((stack) => stack !== '').join('\ncaused by ');
  return text === '' ? undefined : text.slice(0, MAX_TEXT);
}

/** An error of the service about a policy, and not of the policy: it has no stack. */
export function failure(cause: string, stack = ''): Error {
  return Object.assign(new Error(cause), { stack });
}

function causesOf(thrown: unknown): unknown[] {
  const causes: unknown[] = [];
  let next = thrown;
  while (
    causes.length === 0 ||
    (next !== undefined && !causes.includes(next) && causes.length < MAX_CAUSES)
  ) {
    causes.push(next);
    next = causeOf(next);
  }
  return causes;
}

function causeOf(thrown: unknown): unknown {
  try {
    return thrown instanceof Error ? thrown.cause : undefined;
  } catch {
    return undefined;
  }
}

function messageOf(thrown: unknown): string {
  try {
    const text = String(errorText(thrown)).slice(0, MAX_TEXT);
    if (!(thrown instanceof AggregateError) || !Array.isArray(thrown.errors)) {
      return text;
    }
    const parts = thrown.errors.slice(0, MAX_CAUSES).map((one) => String(errorText(one)).slice(0, MAX_TEXT));
    return text === '' ? parts.join('; ') : `${text} (${parts.join('; ')})`;
  } catch {
    return 'the error has no text';
  }
}

function stackOf(thrown: unknown): string {
  try {
    // The stack of a deadline names only the timer of the service.
    return thrown instanceof Error && !(thrown instanceof NoAnswerError)
      ? String(thrown.stack ?? '').slice(0, MAX_TEXT)
      : '';
  } catch {
    return '';
  }
}
