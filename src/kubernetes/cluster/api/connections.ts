/**
 * The connections to one API server, and the meaning of its answers. They are kept alive and bounded in
 * number; watches have their own, so that they never block a request.
 */
import { setMaxListeners } from 'node:events';
import { type Dispatcher, Pool } from 'undici';
import { codeOf } from '../../../base/errors.ts';
import { onOneLine } from '../../../base/visible-text.ts';
import { jsonIn, member, valueAt } from '../../../base/yaml/tree.ts';
import { hideCredentials } from '../../../config/secret.ts';
import type { ClusterAccess } from '../credentials/cluster-access.ts';
import { ApiError, ApiUnreachableError } from './contract.ts';

/** A burst of reviews; further ones wait. An API server grants a client some hundred at a time. */
const MAX_REQUESTS = 32;
/** One per followed kind, and some that are about to end. */
const MAX_WATCHES = 32;
const CONNECT_MS = 5_000;
/** API servers close idle connections after 90 s, balancers in front of them often after 60 s. */
const IDLE_MS = 30_000;

export class Connections {
  readonly access: ClusterAccess;
  readonly requests: Dispatcher;
  readonly watches: Dispatcher;
  readonly #closing = new AbortController();

  constructor(access: ClusterAccess) {
    this.access = access;
    // One for each connection; Node would warn of a leak at more than ten.
    setMaxListeners(0, this.#closing.signal);
    this.requests = this.#pool(MAX_REQUESTS);
    this.watches = this.#pool(MAX_WATCHES);
  }

  /** Waits for calls in progress, and accepts no further ones. */
  async end(): Promise<void> {
    await Promise.all([this.requests.close(), this.watches.close()]);
  }

  async close(): Promise<void> {
    await Promise.all([this.requests.destroy(), this.watches.destroy()]);
    this.#closing.abort();
  }

  #pool(connections: number): Pool {
    const { ca, cert, key, servername } = this.access.tls;
    return new Pool(this.access.origin, {
      connect: {
        ...(ca !== undefined && { ca }),
        ...(cert !== undefined && { cert }),
        ...(key !== undefined && { key }),
        ...(servername !== undefined && { servername }),
        // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 has no effect.
        rejectUnauthorized: true,
        timeout: CONNECT_MS,
        // Also ends connection attempts, which the pool forgets and which would keep the process alive.
        signal: this.#closing.signal,
      },
      allowH2: false,
      connections,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      // Each call has a deadline; these would only cost timers.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection is refused',
  ECONNRESET: 'the connection was closed',
  EPIPE: 'the connection was closed',
  UND_ERR_SOCKET: 'the connection was closed',
  UND_ERR_CONNECT_TIMEOUT: 'no connection within 5 s',
  ETIMEDOUT: 'no connection: timed out',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ENOTFOUND: 'there is no host of that name',
  EAI_AGAIN: 'the name of the host cannot be resolved now',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not from the authority of the cluster',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is not from the authority of the cluster',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is not from the authority of the cluster',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is not from the authority of the cluster',
  CERT_SIGNATURE_FAILURE: 'its certificate is not from the authority of the cluster',
};

/** For any error of undici or Node. It has no cause, which would add headers and keys to logs. */
export function unreachable(server: string, thrown: unknown): ApiUnreachableError {
  if (thrown instanceof ApiUnreachableError) {
    return thrown.message.startsWith(server)
      ? thrown
      : new ApiUnreachableError(`${server}: ${thrown.message}`);
  }
  const code = firstCode(thrown);
  const words = member(WORDS, code) ?? unknown(thrown);
  return new ApiUnreachableError(`${server}: ${words}${code === '' ? '' : ` (${code})`}`);
}

/** Whether a connection ended without an answer, such as an idle one that the API server closed. */
export function isClosedConnection(thrown: unknown): boolean {
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(firstCode(thrown));
}

/** For several addresses of one name, the error contains the errors of each. */
function firstCode(thrown: unknown): string {
  return codeOf(thrown instanceof AggregateError ? thrown.errors[0] : thrown);
}

function unknown(thrown: unknown): string {
  return thrown instanceof Error && thrown.message !== '' ? bounded(thrown.message) : 'no answer';
}

const MAX_MESSAGE = 500;
const MAX_REASON = 60;

/** Reasons for answers without a Status, in Kubernetes' names. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** The error in a Status, or for any other body. `status`: of the answer, if the Status has no code. */
export function statusError(body: unknown, status: number): ApiError {
  const said = valueAt(body, ['kind']) === 'Status' ? body : {};
  const [code, reason, message] = ['code', 'reason', 'message'].map((name) => valueAt(said, [name]));
  const number = typeof code === 'number' && code >= 400 && code <= 599 ? code : status;
  const known = REASONS[number] ?? 'Unknown';
  return new ApiError(
    number,
    typeof reason === 'string' && /^[A-Za-z]+$/.test(reason) ? reason.slice(0, MAX_REASON) : known,
    typeof message === 'string' && message !== '' ? bounded(message) : `the API server answers ${number}`,
  );
}

/** The parsed body of an answer with a 2xx, or its error. */
export function parseAnswer(server: string, status: number, contentType: string, body: Buffer): unknown {
  if (status >= 300 && status < 400) {
    throw new ApiUnreachableError(
      `${server}: the answer is a redirect (${status}), which is not followed: this is not an API server`,
    );
  }
  const text = body.toString('utf8');
  const isHtml = /^\s*</.test(text.slice(0, 200)) || /html/i.test(contentType);
  const value = isHtml ? undefined : jsonIn(text);
  if (status >= 200 && status < 300) {
    if (value !== undefined) {
      return value;
    }
    throw new ApiUnreachableError(
      isHtml
        ? `${server}: the answer is a page of HTML: something else answers in place of the API server`
        : `${server}: the answer is ${body.length === 0 ? 'empty' : 'not JSON, or was cut off'}`,
    );
  }
  // A proxy in front of it sends no Status. Its 403 or 404 does not concern permissions and kinds.
  if (isHtml) {
    throw new ApiUnreachableError(
      `${server}: the answer is a page of HTML (${status}): something else answers in place of the API server`,
    );
  }
  throw statusError(value, status);
}

/** On one line, of limited length, without credentials. */
export function bounded(text: string): string {
  const shown = onOneLine(hideCredentials(text.slice(0, 2 * MAX_MESSAGE)));
  return shown.length > MAX_MESSAGE ? `${shown.slice(0, MAX_MESSAGE)}…` : shown;
}

/** Seconds of a Retry-After header; `undefined` if there is none. Dates, which API servers do not send, count as none. */
export function retryAfter(value: unknown): number | undefined {
  return typeof value === 'string' && /^\d{1,5}$/.test(value.trim()) ? Number(value) : undefined;
}
