import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { expect, it } from 'vitest';
import { listen } from '../support/listening.ts';
import { tokenAnswer } from '../support/recorded-keystone.ts';
import { tlsFixture } from '../support/tls.ts';
import { failureOf, keystoneAt } from './keystone-client.ts';

async function encryptedKeystone(): Promise<string> {
  const [key, cert] = ['server.key', 'server.pem'].map((name) => readFileSync(tlsFixture(name)));
  const server = createServer({ key, cert }, (request, response) => {
    request.resume();
    const { status, headers, body } = tokenAnswer('token-1');
    response.writeHead(status, headers).end(body);
  });
  return `https://127.0.0.1:${(await listen(server)).port}/v3`;
}

it('believes a Keystone for whom cafile vouches, and no other', async () => {
  const url = await encryptedKeystone();
  expect(await keystoneAt(url, { cafile: tlsFixture('ca.pem') }).token()).toBe('token-1');
  expect(await failureOf(keystoneAt(url).token())).toMatch(/self-signed certificate|unable to verify|issuer/);
});
