/** Calls of another service about leases: what is posted, and the key that tells a repeated call from another that looks the same. */
import { hash, randomUUID } from 'node:crypto';
import type { Logger } from '../base/logger.ts';
import type { HttpAnswer, HttpClient } from '../http/contract.ts';
import type { Call } from './call.ts';
import { RETRY_AFTER } from './delivery.ts';

/** A call that the service can recognize when it is repeated. */
export interface KeyedCall extends Call {
  /** `undefined` for a call that may be repeated: it has no `Idempotency-Key`. */
  readonly key?: string;
}

/** The same key for all calls of one request. */
export function keyed({ signal, requestKey = randomUUID() }: Call): KeyedCall {
  return { signal, key: requestKey };
}

/** Posts to a service, for one filter. */
export class ServiceCalls {
  readonly #client: HttpClient;
  readonly #filter: string;
  readonly #logger: Logger;
  /** Origins of services that send a body with a 204: one warning for each. */
  readonly #warnedOf = new Set<string>();

  /** `filter`: the name of its class, for the log. */
  constructor(client: HttpClient, filter: string, logger: Logger) {
    this.#client = client;
    this.#filter = filter;
    this.#logger = logger;
  }

  /** Resolves to the answer, whatever its status. `body`: text is sent as it is. @throws HttpCallError */
  async post(url: string, body: object | string, { signal, key }: KeyedCall): Promise<HttpAnswer> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const headers = key === undefined ? {} : { 'idempotency-key': keyOf(key, text) };
    const answer = await this.#client.postJson(url, text, { signal, headers, answerHeaders: [RETRY_AFTER] });
    const { origin } = new URL(url);
    if (answer.bodyDropped === true && !this.#warnedOf.has(origin)) {
      this.#warnedOf.add(origin);
      this.#logger.warn(
        { filter: this.#filter, service: origin },
        'the external service sends a body with a 204, which HTTP forbids: the body is ignored, and each call needs a new connection',
      );
    }
    return answer;
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

/**
 * The same for all checks and commits of one lease in one request, and different for every other lease or request. A service that
 * records what it allows then counts the lease once, and counts requests that only look alike separately.
 */
function keyOf(requestKey: string, body: string): string {
  return hash('sha256', JSON.stringify([requestKey, body]), 'base64url');
}
