import { expect, it } from 'vitest';
import { secretsOf } from '../../src/notifications/secrets.ts';
import { webhookHeaders } from '../../src/notifications/signature.ts';
import { temporaryFile } from '../support/files.ts';

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
