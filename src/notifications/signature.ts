/** Signatures of messages. Source: Standard Webhooks 1.0, "Signature scheme" and "Webhook headers". */
import { createHmac } from 'node:crypto';

export interface Signed {
  readonly id: string;
  readonly body: string;
}

/**
 * The headers of one attempt: `webhook-id` and `webhook-timestamp`, and with secrets `webhook-signature`, which is over both and the
 * body. The time is that of the attempt, so that a receiver can refuse old messages.
 */
export function webhookHeaders(
  { id, body }: Signed,
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
