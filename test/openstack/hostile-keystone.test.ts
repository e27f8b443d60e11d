/** What answers at `auth_url` is broken, hostile or something else. */

import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { describe, expect, it } from 'vitest';
import { listen } from '../support/listening.ts';
import {
  type KeystoneAnswer,
  recordedAnswer,
  recordedKeystone,
  tokenAnswer,
} from '../support/recorded-keystone.ts';
import { tlsFixture } from '../support/tls.ts';
import { failureOf, keystoneAt, PASSWORD } from './keystone-client.ts';

const PAGE = '<!doctype html><html><body>Welcome</body></html>';
const raw =
  (status: number, body: string, headers: Record<string, string> = {}): KeystoneAnswer =>
  (response) =>
    void response.writeHead(status, headers).end(body);
const withBody = (change: (body: string) => string): KeystoneAnswer => {
  const answer = tokenAnswer('token-1');
  return { ...answer, body: change(answer.body) };
};
const HEADER = { 'x-subject-token': 'token-1' };

describe('a request for a token fails', () => {
  it.each<[string, KeystoneAnswer, RegExp]>([
    ['at a page', raw(200, PAGE), /the answer \(200\) is no token of Keystone; check \[keystone\] auth_url/],
    ['at a page that is no answer', raw(404, PAGE), /got 404: check \[keystone\] auth_url/],
    ['at the list of versions', recordedAnswer('versions'), /a redirect \(300\), which is not followed/],
    ['at a redirect', raw(302, '', { location: 'http://127.0.0.1:1/' }), /a redirect \(302\)/],
    ['at a request that it does not understand', recordedAnswer('no credentials'), /got 400/],
    ['at a wrong password', recordedAnswer('wrong password'), /refuses the account/],
    ['at a wrong project', recordedAnswer('wrong project'), /user, password, project or domain is wrong/],
    [
      'at a deleted application credential',
      recordedAnswer('deleted application credential'),
      /refuses the account/,
    ],
    ['at a 403', raw(403, '{}'), /may not do this/],
    ['at too many requests', raw(429, ''), /does not answer now \(429\)/],
    ['at an error', raw(503, PAGE), /does not answer now \(503\)/],
    ['at JSON that is something else', raw(201, '[]', HEADER), /no token of Keystone/],
    ['at JSON that is nothing', raw(201, 'null', HEADER), /no token of Keystone/],
    ['at half a token', raw(201, tokenAnswer('token-1').body.slice(0, 500), HEADER), /no token of Keystone/],
    [
      'at a body that is cut off',
      (response) => {
        response.writeHead(201, { ...HEADER, 'content-length': '5000' }).write('{');
        setImmediate(() => response.destroy());
      },
      /no usable answer/,
    ],
    ['at a header that is missing', raw(201, tokenAnswer('token-1').body), /has no X-Subject-Token/],
    ['at a token with spaces', tokenAnswer('a b'), /has no X-Subject-Token/],
    ['at a token that is too long', tokenAnswer('t'.repeat(9000)), /has no X-Subject-Token/],
    [
      'at two tokens',
      (response) =>
        void response
          .writeHead(201, { 'x-subject-token': ['token-1', 'token-2'] })
          .end(tokenAnswer('token-1').body),
      /has no X-Subject-Token/,
    ],
    ['at a token that has expired', tokenAnswer('token-1', -1), /has expired before it came/],
    [
      'at a date that is none',
      withBody((body) => body.replace(/"expires_at":"[^"]*"/, '"expires_at":"soon"')),
      /at token\.expires_at/,
    ],
    [
      'at a user without an id',
      withBody((body) =>
        body.replace(/"user":\{/, '"user":{"id":7,"_":{').replace('"audit_ids"', '"x":{}},"audit_ids"'),
      ),
      /no token of Keystone/,
    ],
    ['at more than a catalog', raw(201, 'x'.repeat(3 * 1024 * 1024), HEADER), /no usable answer/],
    ['at an echo of what was sent', raw(401, PASSWORD), /refuses the account/],
  ])('%s', async (_what, answer, message) => {
    const server = await recordedKeystone(() => answer);
    const keystone = keystoneAt(server.url);
    expect(await failureOf(keystone.token())).toMatch(message);
    expect(server.requests).toHaveLength(1);
  });

  it('after its timeout', async () => {
    const server = await recordedKeystone(
      () => (response) => void response.writeHead(201, HEADER).write('{'),
    );
    const keystone = keystoneAt(server.url, { timeout: 1 });
    expect(await failureOf(keystone.token())).toMatch(/no whole answer within 1 s/);
  });
});

it('takes a catalog of a megabyte', async () => {
  const server = await recordedKeystone(() =>
    withBody((body) => {
      const answer = JSON.parse(body) as { token: { catalog: unknown[] } };
      const endpoints = Array.from({ length: 5000 }, (_, index) => ({
        id: String(index),
        interface: 'public',
        region: `region-${index}`,
        region_id: `region-${index}`,
        url: `https://service-${index}.example.org/a/path/that/is/long/enough/for/this`,
      }));
      answer.token.catalog.push({ type: 'compute', name: 'nova', endpoints });
      return JSON.stringify(answer);
    }),
  );
  const keystone = keystoneAt(server.url);
  expect(await keystone.endpoint('reservation')).toBe('http://127.0.0.1:1234/v1');
  expect(await failureOf(keystone.endpoint('compute'))).toMatch(
    /set \[keystone\] region_name to one of region-0, .*…$/,
  );
});

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
