/** One attempt, at receivers that take it, that do not, and that are something else. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { notificationsOptions, secretsOf } from '../../../src/enforcement/notifications/options.ts';
import { Webhook, webhookHeaders } from '../../../src/enforcement/notifications/webhook.ts';
import { createSharedServices } from '../../../src/enforcement/services.ts';
import { temporaryFile } from '../../support/files.ts';
import { recordingLogger } from '../../support/logger.ts';
import { type Answer, policyServer } from '../../support/policy-server.ts';
import { unusedPort } from '../../support/unused-port.ts';

const MESSAGE = { key: 'id-1', body: '{"specversion":"1.0"}' };
const NEVER = new AbortController().signal;

function webhook(url: string, options: object = {}): Webhook {
  const values = notificationsOptions.parse({ webhook_url: url, webhook_timeout: 20, ...options });
  const sender = new Webhook(url, values, createSharedServices({ logger: recordingLogger() }));
  onTestFinished(() => sender.close());
  return sender;
}

async function attempt(answer: Answer, options: object = {}) {
  const server = await policyServer(answer);
  const delivery = await webhook(`${server.url}/hidden/path`, options).deliver(MESSAGE, NEVER);
  return { delivery, server };
}

it('posts the event as it is, with token, id and signature', async () => {
  const { delivery, server } = await attempt(
    { status: 204 },
    { webhook_token: 'mF_9.B5f', webhook_secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
  );
  expect(delivery).toEqual({ outcome: 'delivered' });
  expect(server.requests).toHaveLength(1);
  expect(server.requests[0]).toMatchObject({
    method: 'POST',
    url: '/hidden/path',
    body: MESSAGE.body,
    headers: {
      'content-type': 'application/cloudevents+json; charset=utf-8',
      authorization: 'Bearer mF_9.B5f',
      'webhook-id': 'id-1',
      'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
      'webhook-signature': expect.stringMatching(/^v1,\S{44}$/),
    },
  });
  expect(server.requests[0]?.headers['x-auth-token']).toBeUndefined();
});

describe('an answer', () => {
  it.each([200, 201, 202, 204, 299])('with %i accepts the event', async (status) => {
    const body = status === 204 ? '' : 'ok <html>';
    expect((await attempt({ status, body })).delivery).toEqual({ outcome: 'delivered' });
  });

  it.each([400, 401, 404, 410, 500])('with %i does not, and names no path', async (status) => {
    expect((await attempt({ status })).delivery).toEqual({
      outcome: 'refused',
      error: `expected 2xx from webhook_url, got ${status}`,
    });
  });

  it('that redirects is not followed', async () => {
    const other = await policyServer({ status: 204 });
    const { delivery } = await attempt({ status: 307, headers: { Location: other.url } });
    expect(delivery).toMatchObject({ outcome: 'refused', error: expect.stringContaining('redirects') });
    expect(other.requests).toEqual([]);
  });

  it.each(['<!DOCTYPE html><p>Log in', '\n <html lang="en">'])(
    'that is the page %j is none',
    async (body) => {
      const { delivery } = await attempt({ status: 200, body });
      expect(delivery).toMatchObject({ outcome: 'refused', error: expect.stringContaining('HTML') });
    },
  );

  it.each([429, 503])('with %i makes all messages wait', async (status) => {
    const { delivery } = await attempt({ status, headers: { 'Retry-After': '120' } });
    expect(delivery).toMatchObject({ outcome: 'away', retryAfter: 120 });
  });
});

describe('a receiver', () => {
  it.each<[string, Answer]>([
    [
      'closes in the middle',
      (_, response) => {
        response.writeHead(200, { 'content-length': '100' }).write('half');
        setImmediate(() => response.destroy());
      },
    ],
    ['answers too much', { status: 200, body: 'x'.repeat(100_000) }],
  ])('that %s has not accepted the event, and its path is not named', async (_, answer) => {
    const { delivery } = await attempt(answer);
    expect(delivery).toMatchObject({ outcome: 'refused' });
    expect(JSON.stringify(delivery)).not.toContain('hidden');
  });

  it('that is not there makes all messages wait, and its path is not named', async () => {
    const sender = webhook(`http://127.0.0.1:${await unusedPort()}/hidden/path`);
    const delivery = await sender.deliver(MESSAGE, NEVER);
    expect(delivery).toMatchObject({ outcome: 'away', error: expect.stringContaining('ECONNREFUSED') });
    expect(JSON.stringify(delivery)).not.toContain('hidden');
  });
});

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const NONE = { webhook_token: '', webhook_secret: '' };

/** From the tests of the libraries of Standard Webhooks. */
it('signs as other implementations of Standard Webhooks do', () => {
  const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}' };
  const secrets = secretsOf({ ...NONE, webhook_secret: SECRET });
  expect(webhookHeaders(message, secrets, new Date(1_614_265_330_999))).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
});

it('signs by each secret of a file, and not at all without one', () => {
  const file = temporaryFile('secrets', `# old\n${SECRET}\n\nwhsec_${'QUFB'.repeat(8)}\n`);
  const message = { id: 'a', body: '{}' };
  const secrets = secretsOf({ ...NONE, webhook_secret_file: file });
  const signature = webhookHeaders(message, secrets, new Date(0))['webhook-signature'];
  expect(signature).toMatch(/^v1,\S{44} v1,\S{44}$/);
  expect(webhookHeaders(message, [], new Date(0))).toEqual({ 'webhook-id': 'a', 'webhook-timestamp': '0' });
});
