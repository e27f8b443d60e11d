/** `fetch`, bounded in time and size: follows no redirects, which would leak the token, and verifies certificates. */
import { Agent, fetch as undiciFetch } from 'undici';
import { wholeOf } from '../base/growing-buffer.ts';
import { tracedCall } from '../base/trace-context.ts';

interface BoundedFetchOptions {
  /** Per request, from connecting to the last byte of the answer, in seconds. */
  readonly timeout: number;
  /** A longer answer is an error, in bytes. */
  readonly maxAnswerBytes: number;
  /** PEM: trusted authorities, instead of Node's. */
  readonly ca?: string | undefined;
}

export interface BoundedFetch {
  /** @throws EndpointError; the reason of the request's signal */
  fetch(request: Request): Promise<Response>;
  close(): Promise<void>;
}

/** Statuses of answers without a body. */
const EMPTY = [204, 205, 304];

export function boundedFetch({ timeout, maxAnswerBytes, ca }: BoundedFetchOptions): BoundedFetch {
  // NODE_TLS_REJECT_UNAUTHORIZED=0 would send the token to anyone.
  const dispatcher = new Agent({ connect: { rejectUnauthorized: true, ...(ca !== undefined && { ca }) } });
  const bounded = async (request: Request, more: Readonly<Record<string, string>>) => {
    const { origin } = new URL(request.url);
    const late = AbortSignal.timeout(Math.ceil(timeout * 1000));
    const signal = AbortSignal.any([late, request.signal]);
    const sent = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
    try {
      const answer = await undiciFetch(request.url, {
        method: request.method,
        headers: [...request.headers, ...Object.entries(more)],
        redirect: 'manual',
        signal,
        dispatcher,
        ...(sent !== undefined && { body: sent }),
      });
      const tooLong = () =>
        new EndpointError('failed', `${origin}: the answer is longer than ${maxAnswerBytes} bytes`);
      const body = answer.body && (await wholeOf(answer.body, maxAnswerBytes, tooLong));
      return new Response(EMPTY.includes(answer.status) ? null : new Uint8Array(body ?? []), {
        status: answer.status,
        headers: [...answer.headers],
      });
    } catch (thrown) {
      if (thrown instanceof EndpointError) {
        throw thrown;
      }
      request.signal.throwIfAborted();
      const why = late.aborted ? `no whole answer within ${timeout} s` : reasonOf(thrown);
      throw new EndpointError('failed', `${origin}: ${why}`);
    }
  };
  return {
    fetch: (request) =>
      tracedCall(
        { method: request.method, address: request.url },
        (more) => bounded(request, more),
        ({ status }) => status,
      ),
    close: () => dispatcher.destroy(),
  };
}

/** undici's message is "fetch failed"; the cause has more. */
function reasonOf(thrown: unknown): string {
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
  if (!(cause instanceof Error)) {
    return String(cause);
  }
  return cause.message === '' && 'code' in cause ? String(cause.code) : cause.message;
}

/**
 * - `refused`: an error in the request, or a missing permission
 * - `failed`: no answer, unavailable, or not a service of this project
 */
export type EndpointErrorKind = 'refused' | 'failed';

/** An error of a service. `message` is one sentence for users, without a token. */
export class EndpointError extends Error {
  override readonly name = 'EndpointError';
  readonly kind: EndpointErrorKind;
  /** Of the answer; `undefined` = no answer. */
  readonly status: number | undefined;
  /** Its body, if it is JSON. */
  readonly answer: unknown;
  /** The wrong parameter, header or part of the body, such as `valid_until`; `undefined` = not in the answer. */
  readonly field: string | undefined;
  /** Seconds until a retry; `undefined` = not in the answer. */
  readonly retryAfter: number | undefined;

  constructor(
    kind: EndpointErrorKind,
    message: string,
    {
      status,
      answer,
      retryAfter,
    }: {
      readonly status?: number;
      readonly answer?: unknown;
      readonly retryAfter?: number | undefined;
    } = {},
  ) {
    super(message);
    this.kind = kind;
    this.status = status;
    this.answer = answer;
    this.field = textIn(answer, 'field');
    this.retryAfter = retryAfter;
  }
}

/** A text among the members of an answer. */
export function textIn(answer: unknown, name: string): string | undefined {
  const value =
    typeof answer === 'object' && answer !== null && Object.hasOwn(answer, name)
      ? (answer as Record<string, unknown>)[name]
      : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** The http or https URL in a text; `undefined` = it is none, or has a user, a query or a fragment. */
export function serviceUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    `${url.username}${url.password}${url.search}${url.hash}` === ''
    ? url
    : undefined;
}
