import { errorText } from '../base/errors.ts';

/**
 * Why there is no answer:
 * - `connect`: no connection, so nothing was sent
 * - `transport`: the connection broke, or the answer is not HTTP; the service may have processed the call
 * - `timeout` and `answer-too-large`: as `transport`, by the client's limits
 * - `breaker-open`: not sent, because earlier calls failed
 * - `aborted`: the caller aborted it
 * - `closed`: the client was closed
 * - `invalid-url`: not an http or https URL, or one with credentials, which would appear in logs
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
 * A call without an answer. `message` has the origin and path of the URL, and the reason. `cause` has name,
 * message and code of the underlying error, never that error itself: axios errors contain the request,
 * undici's the response.
 */
export class HttpCallError extends Error {
  override readonly name = 'HttpCallError';
  readonly code: HttpCallErrorCode;

  constructor(code: HttpCallErrorCode, message: string, cause?: Error) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** The target of a call. */
export interface Called {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
}

/** `POST https://host/path: why: the message of the underlying error`. */
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
  const bare = new Error(errorText(thrown));
  bare.name = thrown.name;
  return 'code' in thrown ? Object.assign(bare, { code: thrown.code }) : bare;
}

export function hasCode(error: unknown, code: HttpCallErrorCode): boolean {
  return error instanceof HttpCallError && error.code === code;
}

/**
 * Whether a 204 announces a body, against RFC 9110, 15.3.5. The answer still ends after its headers: the
 * bytes that follow must never be read, or they would be taken for the next answer.
 */
export function announcesBody(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || Number(length) !== 0;
}

/** Whether a connection was closed because of bytes that are not an answer, or an answer without a request. */
export function endedByStrayBytes({ name, message }: Error): boolean {
  return name === 'HTTPParserError' || message === 'bad response';
}
