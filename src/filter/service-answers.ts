/** What another service's answer about a lease means: 204 allows, 403 refuses with a reason, every other answer is a failure. */

import type { Logger } from '../base/logger.ts';
import type { HttpAnswer } from '../http/contract.ts';
import { allow, reject, type Verdict } from './verdict.ts';

/** How much of the body of an unusable answer is logged. */
const LOGGED_CHARACTERS = 500;
const MAX_MESSAGE_LENGTH = 2000;
const DENIED_MESSAGE = 'The external service denied the request.';

export interface ServiceAnswersParts {
  /** The name of the filter's class, for the log. */
  readonly filter: string;
  readonly logger: Logger;
  /** The fields of a 403 that may have the reason, in this order. */
  readonly messageFields: readonly string[];
  /** Hidden in reasons and in the log, since a broken service may echo the request. Empty ones count for nothing. */
  readonly secrets: readonly string[];
}

/** Reads the answers of a service, for one filter. */
export class ServiceAnswers {
  readonly #parts: ServiceAnswersParts;

  constructor(parts: ServiceAnswersParts) {
    this.#parts = parts;
  }

  /** Throws if the answer says neither yes nor no. */
  verdict(answer: HttpAnswer): Verdict {
    if (answer.status === 204) {
      return allow();
    }
    if (answer.status === 403) {
      return reject(this.#reason(answer) ?? DENIED_MESSAGE);
    }
    throw this.unusable(answer);
  }

  /** The error for an answer that says nothing usable. The start of its body is logged. */
  unusable(answer: HttpAnswer): Error {
    this.#logBody(answer, 'the external service gave an unexpected answer');
    return new Error(`expected 204 or 403 from the external service, got ${answer.status}`);
  }

  /** The text of the first message field that has one. The rest of a 403 may leak something: it is only logged. */
  #reason(answer: HttpAnswer): string | undefined {
    const fields = jsonObject(answer.body);
    for (const name of this.#parts.messageFields) {
      const text = fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (typeof text === 'string' && text.trim() !== '') {
        // Shortened last, because a token that is cut off would not be found.
        return this.#withoutSecrets(printable(text)).slice(0, MAX_MESSAGE_LENGTH);
      }
    }
    this.#logBody(answer, 'the external service denied without a usable message');
    return undefined;
  }

  #logBody({ status, body }: HttpAnswer, line: string): void {
    const { filter, logger } = this.#parts;
    const start = this.#withoutSecrets(body).slice(0, LOGGED_CHARACTERS);
    logger.debug({ filter, status, body: start }, line);
  }

  #withoutSecrets(text: string): string {
    return this.#parts.secrets
      .filter((secret) => secret !== '')
      .reduce((rest, secret) => rest.replaceAll(secret, '****'), text);
  }
}

function jsonObject(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** On one line, without control characters. */
function printable(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').trim();
}
