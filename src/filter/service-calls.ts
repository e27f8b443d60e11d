/** Calls to another service about leases: the content, key and token of a request, and the meaning of the answer. */
import { hash, randomUUID } from 'node:crypto';
import { errorText } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { cut, onOneLine, withoutSecrets } from '../base/visible-text.ts';
import { jsonIn } from '../base/yaml/tree.ts';
import { HttpCallError } from '../http/call-error.ts';
import type { HttpAnswer, HttpCallOptions, HttpClient } from '../http/contract.ts';
import type { Delivery } from './outbox.ts';
import type { ServiceTokens } from './services.ts';
import { allow, type Call, reject, type Verdict } from './verdict.ts';

/** A call whose repetition the service can recognize. */
export interface KeyedCall extends Call {
  /** `undefined` for a call that may be repeated: it has no `Idempotency-Key`. */
  readonly key?: string;
}

/** Gives all calls of one request the same key. */
export function keyed({ signal, requestKey = randomUUID() }: Call): KeyedCall {
  return { signal, key: requestKey };
}

/** Posts to a service, for one filter. */
export class ServiceCalls {
  readonly #client: HttpClient;
  readonly #filter: string;
  readonly #logger: Logger;
  /** Origins of services that send a body with a 204: one warning per origin. */
  readonly #warnedOf = new Set<string>();

  /** `filter`: the class name, for the log. */
  constructor(client: HttpClient, filter: string, logger: Logger) {
    this.#client = client;
    this.#filter = filter;
    this.#logger = logger;
  }

  /** Resolves to the answer, whatever its status. `body`: a text is sent as is. @throws HttpCallError */
  async post(url: string, body: object | string, { signal, key }: KeyedCall): Promise<HttpAnswer> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const headers = key === undefined ? {} : { 'idempotency-key': keyOf(key, text) };
    const answer = await this.#client.postJson(url, text, { signal, headers, answerHeaders: [RETRY_AFTER] });
    if (answer.bodyDropped === true) {
      this.#warnOf(new URL(url).origin);
    }
    return answer;
  }

  #warnOf(service: string): void {
    if (!this.#warnedOf.has(service)) {
      this.#warnedOf.add(service);
      this.#logger.warn(
        { filter: this.#filter, service },
        'the external service sends a body with a 204, which HTTP forbids: the body is ignored, and each call needs a new connection',
      );
    }
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

/**
 * The same for all checks and commits of one lease in one request, different for every other lease or
 * request. A service that records what it allows then counts the lease once, and similar requests separately.
 */
function keyOf(requestKey: string, body: string): string {
  return hash('sha256', JSON.stringify([requestKey, body]), 'base64url');
}

/** How much of an unusable answer's body is logged. */
const LOGGED_CHARACTERS = 500;
const MAX_MESSAGE_LENGTH = 2000;
const DENIED_MESSAGE = 'The external service denied the request.';

export interface ServiceAnswersParts {
  /** The filter's class name, for the log. */
  readonly filter: string;
  readonly logger: Logger;
  /** The fields of a 403 that may have the reason, in order. */
  readonly messageFields: readonly string[];
  /** Hidden in reasons and logs: a broken service may echo the request. Empty ones are ignored. */
  readonly secrets: readonly string[];
}

/** Reads the answers of a service, for one filter. */
export class ServiceAnswers {
  readonly #parts: ServiceAnswersParts;

  constructor(parts: ServiceAnswersParts) {
    this.#parts = parts;
  }

  /** Throws if the answer neither allows nor denies. */
  verdict(answer: HttpAnswer): Verdict {
    if (answer.status === 204) {
      return allow();
    }
    if (answer.status === 403) {
      return reject(this.#reason(answer) ?? DENIED_MESSAGE);
    }
    throw this.unusable(answer, '204 or 403');
  }

  /** The error for an unusable answer. Logs the start of its body. */
  unusable(answer: HttpAnswer, expected = '204'): Error {
    this.#logBody(answer, 'the external service gave an unexpected answer');
    return new Error(unexpected(expected, answer));
  }

  /** The first message field with a text. The rest of a 403 may leak something: it is only logged. */
  #reason(answer: HttpAnswer): string | undefined {
    const fields = jsonObject(answer.body);
    for (const name of this.#parts.messageFields) {
      const text = fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (typeof text === 'string' && text.trim() !== '') {
        // Shortened last: a truncated token would not be found.
        return cut(withoutSecrets(onOneLine(text.trim()), this.#parts.secrets), MAX_MESSAGE_LENGTH);
      }
    }
    this.#logBody(answer, 'the external service denied without a usable message');
    return undefined;
  }

  #logBody({ status, body }: HttpAnswer, line: string): void {
    const { filter, logger, secrets } = this.#parts;
    const start = withoutSecrets(body, secrets).slice(0, LOGGED_CHARACTERS);
    logger.debug({ filter, status, body: start }, line);
  }
}

function jsonObject(body: string): Record<string, unknown> | undefined {
  const value = jsonIn(body);
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
}

/** Request this header of the answer: `deliveryOf` reads it. */
export const RETRY_AFTER = 'retry-after';

/**
 * Posts a message. `mistakeIn`: what is wrong with an answer; `undefined` = the message is delivered. By
 * default only `204` is accepted: the sender of any other answer may not have understood the message. Never
 * throws.
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

function noContent(answer: HttpAnswer): string | undefined {
  return answer.status === 204 ? undefined : unexpected('204', answer);
}

function unexpected(expected: string, { status }: HttpAnswer): string {
  return `expected ${expected} from the external service, got ${status}`;
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

/**
 * A client that sends a Keystone token as `X-Auth-Token`. After a 401 it repeats the call once, if there is a
 * new token: a service that answers 401 has not processed the call. A token that the service echoes is hidden
 * in the answer. Calls also reject with the errors of `token`.
 */
export function withKeystoneToken(client: HttpClient, tokens: ServiceTokens): HttpClient {
  const ask = async (
    options: HttpCallOptions = {},
    call: (options: HttpCallOptions) => Promise<HttpAnswer>,
  ): Promise<HttpAnswer> => {
    const attempt = async (token: string) => {
      // Not a spread: the signal of a call is a getter of its class.
      const { signal, answerHeaders, headers } = options;
      const answer = await call({ signal, answerHeaders, headers: { ...headers, 'x-auth-token': token } });
      return answer.body.includes(token)
        ? { ...answer, body: answer.body.replaceAll(token, '****') }
        : answer;
    };
    const first = await tokens.token(options);
    const answer = await attempt(first);
    if (answer.status !== 401) {
      return answer;
    }
    tokens.refused(first);
    const second = await tokens.token(options);
    return second === first ? answer : attempt(second);
  };
  return {
    postJson: (url, json, options) => ask(options, (call) => client.postJson(url, json, call)),
    get: (url, options) => ask(options, (call) => client.get(url, call)),
    close: () => client.close(),
  };
}
