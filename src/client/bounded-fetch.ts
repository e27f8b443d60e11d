/** `fetch`, bounded in time and size: it follows no redirect, which would carry the token away, and verifies certificates. */
import { Agent, fetch as undiciFetch } from 'undici';
import { GrowingBuffer } from '../base/growing-buffer.ts';
import { tracedCall } from '../base/traced-call.ts';

interface BoundedFetchOptions {
  /** For each request, from connecting to the last byte of its answer, in seconds. */
  readonly timeout: number;
  /** A longer answer is an error, in bytes. */
  readonly maxAnswerBytes: number;
  /** PEM: the authorities to trust, instead of those that Node trusts. */
  readonly ca?: string | undefined;
}

export interface BoundedFetch {
  /** @throws EndpointError; the reason of the request's signal */
  fetch(request: Request): Promise<Response>;
  close(): Promise<void>;
}

/** Statuses whose answers have no body. */
const EMPTY = [204, 205, 304];

export function boundedFetch({ timeout, maxAnswerBytes, ca }: BoundedFetchOptions): BoundedFetch {
  // NODE_TLS_REJECT_UNAUTHORIZED=0 would send the token to anybody.
  const dispatcher = new Agent({ connect: { rejectUnauthorized: true, ...(ca !== undefined && { ca }) } });
  const bounded = async (request: Request, more: Readonly<Record<string, string>>) => {
    const { origin } = new URL(request.url);
    const late = AbortSignal.timeout(Math.ceil(timeout * 1000));
    const signal = AbortSignal.any([late, request.signal]);
    const sent = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
    try {
      const answer = await undiciFetch(request.url, {
        ...{
          method: request.method,
          headers: [...request.headers, ...Object.entries(more)],
          redirect: 'manual',
          signal,
          dispatcher,
        },
        ...(sent !== undefined && { body: sent }),
      });
      const body = new GrowingBuffer();
      for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
        if (body.length + chunk.length > maxAnswerBytes) {
          throw new EndpointError('failed', `${origin}: the answer is longer than ${maxAnswerBytes} bytes`);
        }
        body.push(chunk);
      }
      return new Response(EMPTY.includes(answer.status) ? null : new Uint8Array(body.bytes), {
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

/** undici says only "fetch failed"; the cause knows why. */
function reasonOf(thrown: unknown): string {
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
  if (!(cause instanceof Error)) {
    return String(cause);
  }
  return cause.message === '' && 'code' in cause ? String(cause.code) : cause.message;
}

/**
 * - `refused`: it answered that something in the request is wrong, or may not be done
 * - `failed`: it did not answer, cannot answer now, or is no service of this project
 */
export type EndpointErrorKind = 'refused' | 'failed';

/** What went wrong at a service. `message` is one sentence for people; it contains no token. */
export class EndpointError extends Error {
  override readonly name = 'EndpointError';
  readonly kind: EndpointErrorKind;
  /** Of the answer; `undefined` = there was none. */
  readonly status: number | undefined;
  /** Its body, if that is JSON. */
  readonly answer: unknown;
  /** The parameter, header or part of the body that is wrong, such as `valid_until`; `undefined` = the answer names none. */
  readonly field: string | undefined;
  /** After how many seconds to try again; `undefined` = the answer does not tell. */
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
