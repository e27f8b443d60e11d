/** Guesses of tokens, by whichever way they come: limited for each address, and never in the way of a right token. */
import { expect, it, vi } from 'vitest';
import { capturedText } from '../../support/requests.ts';
import { runService } from '../../support/running-service.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';

const RIGHT = 'the-token-of-blazar';
const FITS = capturedText('check-create-physical-host.json');
const sends = (token: string) => ({ 'X-Auth-Token': token });
const from = (address: string, token: string) => ({ ...sends(token), 'X-Forwarded-For': address });

async function guarded(more: Readonly<Record<string, unknown>> = {}) {
  const limits = { max_lease_duration: 345_600 };
  const running = await runService({
    enforcement: limits,
    ...more,
    service: { tokens: [RIGHT], trusted_proxies: ['127.0.0.1'], ...(more.service as object) },
  });
  const guess = async (address: string, count = 1, path = '/check-create') => {
    const statuses = new Set<number>();
    for (let index = 0; index < count; index += 1) {
      const { status } = await running.post(path, FITS, from(address, `guess-${index}`));
      statuses.add(status);
    }
    return [...statuses];
  };
  return { ...running, guess };
}

it('the eleventh wrong token in a minute from one address is answered with 429, a right one never', async () => {
  const start = Date.UTC(2026, 11, 1, 9);
  vi.useFakeTimers({ toFake: ['Date'], now: start });
  const { post, guess } = await guarded();
  expect(await guess('192.0.2.7', 10)).toEqual([401]);
  vi.setSystemTime(start + 15_000);
  const { status, headers, json } = await post('/v1/on-end', FITS, from('192.0.2.7', 'another'));
  expect([status, headers.get('Retry-After')]).toEqual([429, '45']);
  expect(json).toEqual({ message: expect.stringContaining('ten wrong tokens from this address') });
  expect(await guess('192.0.2.8')).toEqual([401]);
  // Read by Koa, or before it.
  expect((await post('/check-create', FITS, from('192.0.2.7', RIGHT))).status).toBe(204);
  const type = { 'Content-Type': 'application/json; charset=utf-8' };
  expect((await post('/check-create', FITS, { ...from('192.0.2.7', RIGHT), ...type })).status).toBe(204);
  vi.setSystemTime(start + 60_000);
  expect(await guess('192.0.2.7')).toEqual([401]);
});

it('a request without a token is no guess', async () => {
  const { post } = await guarded();
  for (let index = 0; index < 15; index += 1) {
    expect((await post('/check-create', FITS)).status).toBe(401);
    expect((await post('/check-create', FITS, { 'X-Auth-Token': '' })).status).toBe(401);
  }
});

it('guesses at the API and the login count with those at the endpoints', async () => {
  const { request, guess } = await guarded();
  const logIn = (token: string) =>
    request('/login', {
      method: 'POST',
      redirect: 'manual',
      headers: { 'X-Forwarded-For': '192.0.2.7' },
      body: new URLSearchParams({ token }),
    });
  expect(await guess('192.0.2.7', 10)).toEqual([401]);
  expect((await request('/v1/budgets', { headers: from('192.0.2.7', 'another') })).status).toBe(429);
  expect((await request('/', { headers: from('192.0.2.7', 'another') })).status).toBe(429);
  const { status, headers, text } = await logIn('another');
  expect([status, headers.has('Retry-After'), headers.has('Set-Cookie')]).toEqual([429, true, false]);
  expect(text).toContain('too many wrong tokens from this address. Please try again in ');
  expect((await logIn(RIGHT)).status, 'strangers may have the same address').toBe(303);
  expect((await request('/configuration', { headers: from('192.0.2.7', RIGHT) })).status).toBe(200);
});

it('a right token of Keystone passes, too, also one that is new', async () => {
  const keystone = await ValidatingKeystone.start();
  keystone.tokens.set('gAAAAAB-of-blazar', 'service');
  const { post, guess } = await guarded({ service: { keystone_auth: true }, keystone: keystone.account });
  expect(await guess('192.0.2.7', 11)).toEqual([401, 429]);
  expect((await post('/check-create', FITS, from('192.0.2.7', 'gAAAAAB-of-blazar'))).status).toBe(204);
});

it('invented tokens at the login keep nobody from logging in with a password', async () => {
  const keystone = await ValidatingKeystone.start();
  const service = { keystone_auth: true, deadline: 60 };
  const { request } = await guarded({ service, keystone: keystone.account });
  const logIn = (path: string, address: string, fields: Record<string, string>) =>
    request(path, {
      method: 'POST',
      headers: {
        'X-Forwarded-For': address,
        'Content-Type': 'application/x-www-form-urlencoded',
      },
      body: String(new URLSearchParams(fields)),
    });
  const release = keystone.hold();
  const invented = Array.from({ length: 80 }, (_, index) =>
    logIn('/login', '192.0.2.7', { token: `gAAAAAB-invented-${index}` }),
  );
  await keystone.untilAsked(8);
  const alice = logIn('/login/keystone', '192.0.2.8', { username: 'alice', password: 'alice' });
  const isAsked = async () => {
    // For her projects, after her password.
    while (!keystone.asked.includes('undefined')) {
      await keystone.untilAsked(keystone.asked.length + 1);
    }
    return 'asked';
  };
  expect(await Promise.race([isAsked(), alice])).toBe('asked');
  release();
  await alice;
  expect(new Set((await Promise.all(invented)).map(({ status }) => status))).toEqual(new Set([401, 429]));
});
