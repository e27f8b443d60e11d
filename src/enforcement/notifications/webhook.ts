/** Posts messages of the outbox to the receiver. */

import { createHmac } from 'node:crypto';
import type { Delivery, OutboxMessage, OutboxSender } from '../../filter/outbox.ts';
import { deliveryOf, RETRY_AFTER } from '../../filter/service-calls.ts';
import { tlsFrom, tokenHeaders } from '../../filter/service-options.ts';
import type { SharedServices } from '../../filter/services.ts';
import type { HttpAnswer, HttpClient } from '../../http/contract.ts';
import { NOTICES } from '../../ledger/outbox/messages.ts';
import { type NotificationsOptions, secretsOf, tokenOf } from './options.ts';

/** Source: CloudEvents 1.0.2, HTTP protocol binding, "Structured Content Mode". */
const CONTENT_TYPE = 'application/cloudevents+json; charset=utf-8';

export class Webhook implements OutboxSender {
  readonly name = NOTICES;
  readonly maxAge: number;
  readonly #url: string;
  readonly #secrets: readonly Buffer[];
  readonly #client: HttpClient;
  readonly #now: () => Date;

  /** The options must be valid. */
  constructor(url: string, options: NotificationsOptions, { http, clock }: SharedServices) {
    this.#url = url;
    this.maxAge = options.webhook_max_age;
    this.#secrets = secretsOf(options);
    this.#now = () => clock.now();
    this.#client = http.createClient({
      timeout: options.webhook_timeout,
      connectRetries: 0,
      // The outbox itself pauses a receiver that fails.
      breakerFailures: 0,
      breakerCooldown: 0,
      // The path may be a secret.
      hidesPath: true,
      headers: { 'Content-Type': CONTENT_TYPE, ...tokenHeaders('', tokenOf(options)) },
      tls: tlsFrom(
        options.webhook_ca_file,
        options.webhook_client_cert_file,
        options.webhook_client_key_file,
      ),
    });
  }

  async deliver({ key, body }: OutboxMessage, signal: AbortSignal): Promise<Delivery> {
    const headers = webhookHeaders({ id: key, body }, this.#secrets, this.#now());
    const call = { signal, headers, answerHeaders: [RETRY_AFTER] };
    const delivery = await deliveryOf(() => this.#client.postJson(this.#url, body, call), mistakeIn);
    return delivery.outcome === 'delivered' ? delivery : { ...delivery, error: this.#shown(delivery.error) };
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  /** Hides the path of a URL, which may be a secret. */
  #shown(error: string): string {
    const { origin, pathname } = new URL(this.#url);
    return error.replaceAll(`${origin}${pathname}`, 'webhook_url');
  }
}

/** Any 2xx accepts the event, except an HTML page: the URL is then wrong. */
function mistakeIn({ status, body }: HttpAnswer): string | undefined {
  if (status < 200 || status > 299) {
    const hint = status > 299 && status < 400 ? ', and redirects are not followed' : '';
    return `expected 2xx from webhook_url, got ${status}${hint}`;
  }
  return /^\s*<(?:!doctype\s+html|html)\b/i.test(body)
    ? `expected no page from webhook_url, got ${status} with HTML`
    : undefined;
}

/**
 * The headers of one attempt: `webhook-id` and `webhook-timestamp`, and with secrets `webhook-signature`,
 * over both and the body. The time is that of the attempt, so that a receiver can refuse old messages.
 */
export function webhookHeaders(
  { id, body }: { readonly id: string; readonly body: string },
  secrets: readonly Buffer[],
  now: Date,
): Record<string, string> {
  const timestamp = String(Math.floor(now.getTime() / 1000));
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  );
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(signatures.length === 0 ? {} : { 'webhook-signature': signatures.join(' ') }),
  };
}
