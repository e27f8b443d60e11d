import { errorText } from '../errors.ts';

/**
 * Why there is no answer:
 * - `connect`: nothing was sent, since there was no connection
 * - `transport`: the connection broke, or what came back is no HTTP; the service may have acted on the call
 * - `timeout` and `answer-too-large`: the same, by our own limits
 * - `breaker-open`: not tried, since the calls before it failed
 * - `aborted`: the caller gave up
 * - `closed`: the client was closed
 * - `invalid-url`: no http or https address, or one with credentials, which would end up in somebody's log
 */
export type HttpCallErrorCode =
  | 'connect'
  | 'transport'
  | 'timeout'
  | 'answer-too-large'
  | 'breaker-open'
  | 'aborted'
  | 'closed'
  | 'invalid-url';

/**
 * A call without an answer. `message` says where to (origin and path, nothing else) and why. `cause` has the name, message
 * and code of what failed underneath, and is never that error itself: axios's hold the request, undici's what came back.
 */
export class HttpCallError extends Error {
  override readonly name = 'HttpCallError';
  readonly code: HttpCallErrorCode;

  constructor(code: HttpCallErrorCode, message: string, cause?: Error) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** What is called. */
export interface Called {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
}

/** `POST https://host/path: why: what failed underneath`. */
export function callError(
  code: HttpCallErrorCode,
  { method, url }: Called,
  why: string,
  thrown?: unknown,
): HttpCallError {
  const cause = thrown === undefined ? undefined : bareError(thrown);
  const detail = cause === undefined ? '' : `: ${cause.message}`;
  return new HttpCallError(code, `${method} ${url.origin}${url.pathname}: ${why}${detail}`, cause);
}

function bareError(thrown: unknown): Error {
  if (!(thrown instanceof Error)) {
    return new Error(typeof thrown === 'string' ? thrown : `a thrown ${typeof thrown}`);
  }
  // Node says what failed for each address of a name, and nothing of all together.
  const parts: unknown[] =
    thrown instanceof AggregateError && thrown.message === '' ? thrown.errors : [thrown];
  const bare = new Error(parts.map(errorText).join('; '));
  bare.name = thrown.name;
  return 'code' in thrown ? Object.assign(bare, { code: thrown.code }) : bare;
}

export function hasCode(error: unknown, code: HttpCallErrorCode): boolean {
  return error instanceof HttpCallError && error.code === code;
}
