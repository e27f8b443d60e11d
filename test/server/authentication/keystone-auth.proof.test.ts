/** Tokens of Keystone at the endpoints of Blazar's protocol. */
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { sectionText } from '../../support/files.ts';
import { metric } from '../../support/metric.ts';
import { openRaw, postHead } from '../../support/raw-http.ts';
import { CAPTURED_POSTS, capturedText } from '../../support/requests.ts';
import { runService, runServiceOnFile } from '../../support/running-service.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';

const SECRET = 's3cret-0123456789abcdef';
const FITS = capturedText('check-create-physical-host.json');
const TOKEN = 'gAAAAAB-of-blazar';
const MEMBER = 'gAAAAAB-of-alice';
const UNKNOWN = 'gAAAAAB-unknown';
const UNAUTHORIZED = { status: 401, json: { message: 'expected a valid token in the header X-Auth-Token' } };
const FORBIDDEN = {
  status: 403,
  json: {
    message: 'expected a token of a user with one of the roles service, admin in the project of the token',
  },
};
const UNAVAILABLE = {
  status: 503,
  json: {
    message: 'the token cannot be validated now, because Keystone does not answer; please try again',
  },
};

const sends = (token: string) => ({ 'X-Auth-Token': token });
const limits = { enforcement: { max_lease_duration: 345_600 } };

/** A service that asks a Keystone with three tokens. */
async function guarded(service: Readonly<Record<string, unknown>> = {}) {
  const keystone = await ValidatingKeystone.start();
  keystone.tokens
    .set(TOKEN, 'service')
    .set(MEMBER, 'member')
    .set('gAAAAAB-of-carol', 'reader')
    .set('gAAAAAB-unscoped', 'unscoped');
  const running = await runService({
    ...limits,
    service: { keystone_auth: true, ...service },
    keystone: keystone.account,
  });
  const check = (token?: string) =>
    running.post('/check-create', FITS, token === undefined ? {} : sends(token));
  return { keystone, check, ...running };
}

describe('[service] keystone_auth', () => {
  it('guards every path', async () => {
    const { post } = await guarded();
    for (const [path, body] of CAPTURED_POSTS) {
      expect(await post(path, body), path).toMatchObject(UNAUTHORIZED);
      expect(await post(path, body, sends(UNKNOWN)), path).toMatchObject(UNAUTHORIZED);
      expect(await post(path, body, sends(MEMBER)), path).toMatchObject(FORBIDDEN);
      expect(await post(path, body, sends(TOKEN)), path).toMatchObject({ status: 204 });
    }
  });

  it.each(['identity', 'gzip'])(
    'forgets a client that goes while Keystone is asked: %s',
    async (encoding) => {
      const { keystone, service, port, request } = await guarded();
      const release = keystone.hold();
      const body = encoding === 'gzip' ? gzipSync(FITS) : Buffer.from(FITS);
      const line = encoding === 'gzip' ? 'Content-Encoding: gzip\r\n' : '';
      const { socket } = await openRaw(port);
      socket.write(postHead('/check-create', body.length, `X-Auth-Token: ${TOKEN}\r\n${line}`));
      socket.write(body);
      await keystone.untilAsked(1);
      socket.resetAndDestroy();
      // The service hears of it before it hears of these.
      await request('/healthz');
      await request('/healthz');
      release();
      await expect
        .poll(async () => (await request('/metrics')).text)
        .toContain('http_requests_total{path="/check-create",status="400"} 1');
      // Waits for every request.
      await service.close();
    },
  );

  it('takes the tokens of [service] as before, and asks nobody about them', async () => {
    const { keystone, check } = await guarded({
      tokens: [SECRET, 'n3xt-0123456789abcdef'],
    });
    await keystone.stop();
    expect((await check(SECRET)).status).toBe(204);
    expect((await check('n3xt-0123456789abcdef')).status).toBe(204);
    await keystone.restart();
    expect(keystone.asked).toEqual([]);
    expect((await check(TOKEN)).status).toBe(204);
    expect(await check(UNKNOWN)).toMatchObject(UNAUTHORIZED);
    expect(await check()).toMatchObject(UNAUTHORIZED);
  });

  it('refuses what is no token without asking Keystone', async () => {
    const { keystone, check, raw } = await guarded();
    for (const token of ['', ' ', 'a b', `${TOKEN},${TOKEN}`, 'g\u00e4', '"x"', 'a'.repeat(4097)]) {
      expect(await check(token), JSON.stringify(token)).toMatchObject(UNAUTHORIZED);
    }
    const request = (headers: string) =>
      raw(
        `POST /check-create HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(FITS)}\r\n${headers}\r\n\r\n${FITS}`,
      );
    expect(await request(`X-Auth-Token: ${TOKEN}\r\nX-Auth-Token: ${TOKEN}`)).toMatch(/^HTTP\/1.1 401 /);
    expect(await request(`X-Auth-Token: ${TOKEN}\r\n folded`)).toMatch(/^HTTP\/1.1 40[01] /);
    expect(await request(`X-Auth-Token: ${TOKEN}\nX-Auth-Token: ${TOKEN}`)).toMatch(/^HTTP\/1.1 40[01] /);
    expect(await request('X-Auth-Token: \xff\xfe')).toMatch(/^HTTP\/1.1 401 /);
    expect(await request(`X-Auth-Token: ${'a'.repeat(65_536)}`)).toMatch(/^HTTP\/1.1 431 /);
    expect(keystone.asked).toEqual([]);
    expect(await request(`X-Auth-Token: ${TOKEN}`)).toMatch(/^HTTP\/1.1 204 /);
  });

  it('answers 503 for unknown tokens while Keystone is away, and known ones go on', async () => {
    const { keystone, check, logger } = await guarded({ token_cache_time: 0 });
    expect((await check(TOKEN)).status).toBe(204);
    await keystone.stop();
    expect((await check(TOKEN)).status).toBe(204);
    const answer = await check('gAAAAAB-of-carol');
    expect(answer).toMatchObject(UNAVAILABLE);
    expect(answer.headers.get('Retry-After')).toBe('5');
    const refused = logger.lines.filter(({ message }) => message === 'request refused');
    expect(refused).toMatchObject([{ fields: { status: 503, reason: UNAVAILABLE.json.message } }]);
    await keystone.restart();
    keystone.tokens.delete(TOKEN);
    // Asked beside the first request after the outage.
    await expect.poll(async () => (await check(TOKEN)).status).toBe(401);
  });

  it('counts requests and validations, and logs refusals without the token', async () => {
    const { check, request, logger } = await guarded({ tokens: [SECRET] });
    for (const token of [SECRET, TOKEN, TOKEN, MEMBER, UNKNOWN, UNKNOWN, 'no token']) {
      await check(token);
    }
    const { text } = await request('/metrics');
    const count = (name: string, labels: Record<string, string>) =>
      metric(text, `blazar_enforcement_keystone_${name}`, labels);
    const requests = (outcome: string, from: string) => count('token_requests_total', { outcome, from });
    expect(requests('allowed', 'keystone')).toBe(1);
    expect(requests('allowed', 'cache')).toBe(1);
    expect(requests('forbidden', 'keystone')).toBe(1);
    expect(requests('invalid', 'keystone')).toBe(1);
    expect(requests('invalid', 'cache')).toBe(1);
    expect(requests('invalid', 'form')).toBe(1);
    expect(count('validations_total', { outcome: 'valid' })).toBe(2);
    expect(count('validations_total', { outcome: 'invalid' })).toBe(1);
    expect(count('validations_total', { outcome: 'failed' })).toBe(0);
    expect(count('tokens_known', { kind: 'valid' })).toBe(2);
    expect(count('tokens_known', { kind: 'unknown' })).toBe(1);
    expect(count('validations_under_way', {})).toBe(0);
    const lines = JSON.stringify(logger.lines);
    expect(lines).toContain(FORBIDDEN.json.message);
    expect(lines).not.toMatch(/gAAAAAB|s3cret-0123456789abcdef|no token/);
    expect(text).not.toMatch(/gAAAAAB|s3cret-0123456789abcdef/);
  });
});

describe('the other authenticators', () => {
  it('ask for a login where nothing is shown', async () => {
    const { request } = await guarded();
    expect(await request('/')).toMatchObject({ status: 401, text: expect.stringContaining('Log in') });
    expect((await request('/', { headers: sends('') })).status).toBe(401);
    const login = (token: string) =>
      request('/login', { method: 'POST', redirect: 'manual', body: new URLSearchParams({ token }) });
    expect((await login('gAAAAAB-of-nobody')).status).toBe(401);
    expect((await login('')).status).toBe(401);
  });
});

describe('at the start', () => {
  const start = (service: object, keystone: object) =>
    runService({ ...limits, service: { ...service }, keystone: { ...keystone } });
  const account = { auth_url: 'http://127.0.0.1:9/v3', username: 'u', password: 'p', project_name: 's' };

  it('needs an account in [keystone], and says where', async () => {
    await expect(start({ keystone_auth: true }, {})).rejects.toThrow(
      'in code: [service] keystone_auth: expected an account in [keystone] with it',
    );
  });

  it('counts as asking for a token, at any address and in the banner', async () => {
    await expect(start({ host: '0.0.0.0' }, account)).rejects.toThrow('or keystone_auth');
    const { service } = await start({ host: '0.0.0.0', keystone_auth: true }, account);
    expect(service).toMatchObject({
      tokenForLeases: true,
      authenticators: [
        {
          title: 'Blazar',
          asks: ['a token of Keystone with one of the roles service, admin, in the header X-Auth-Token'],
        },
      ],
    });
    const both = await start({ keystone_auth: true, tokens: [SECRET] }, account);
    expect(both.service.authenticators[0]?.asks).toEqual([
      'one of [service] tokens or a token of Keystone with one of the roles service, admin, in the header X-Auth-Token',
    ]);
  });

  it('does not need Keystone', async () => {
    const { post } = await start({ keystone_auth: true }, account);
    expect(await post('/check-create', FITS, sends(TOKEN))).toMatchObject(UNAVAILABLE);
  });
});

describe('a reload', () => {
  /** A service whose file a test writes again. */
  async function reloaded(first: string) {
    const keystone = await ValidatingKeystone.start();
    keystone.tokens.set(TOKEN, 'service').set(MEMBER, 'member');
    const account = sectionText('keystone', keystone.account);
    const chain = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 345600\n';
    const text = (lines: string[], section = account) =>
      `${chain}[service]\nport = 0\n${lines.map((line) => `${line}\n`).join('')}${section}`;
    const { change, ...running } = await runServiceOnFile(text([first]));
    const check = async (token?: string) =>
      (await running.post('/check-create', FITS, token === undefined ? {} : sends(token))).status;
    const rewrite = (lines: string[], section?: string) => change(text(lines, section));
    return { keystone, check, rewrite, account, ...running };
  }

  it('keeps what is known of tokens: Keystone may be away at that moment', async () => {
    const { keystone, check, rewrite } = await reloaded('keystone_auth = true');
    expect(await check(TOKEN)).toBe(204);
    await keystone.stop();
    expect(await rewrite(['keystone_auth = true', 'body_limit = 10000000'])).toBe(true);
    expect(await check(TOKEN)).toBe(204);
    expect(keystone.asked).toEqual([TOKEN]);
  });

  it('applies other roles and another cache time to tokens that are known', async () => {
    const { keystone, check, rewrite } = await reloaded('keystone_auth = true');
    expect(await check(MEMBER)).toBe(403);
    expect(await check(TOKEN)).toBe(204);
    await rewrite(['keystone_auth = true', 'service_roles = member']);
    expect(await check(MEMBER)).toBe(204);
    await rewrite(['keystone_auth = true', 'service_roles = operator']);
    expect(await check(TOKEN)).toBe(403);
    expect(keystone.asked.length).toBe(2);
    await rewrite(['keystone_auth = true', 'token_cache_time = 0']);
    await check(TOKEN);
    expect(keystone.asked.length).toBe(3);
  });

  it('forgets all tokens with another [keystone]', async () => {
    const { keystone, check, rewrite, account } = await reloaded('keystone_auth = true');
    expect(await check(TOKEN)).toBe(204);
    await rewrite(['keystone_auth = true'], `${account}timeout = 31\n`);
    expect(await check(TOKEN)).toBe(204);
    expect(keystone.asked.length).toBe(2);
  });

  it('finishes with the old Keystone what has begun with it', async () => {
    const { keystone, check, rewrite, account } = await reloaded('keystone_auth = true');
    const release = keystone.hold();
    const first = check(TOKEN);
    await keystone.untilAsked(1);
    expect(await rewrite(['keystone_auth = true'], `${account}timeout = 31\n`)).toBe(true);
    release();
    expect(await first).toBe(204);
  });

  it('that leaves nobody asked is refused: keystone_auth is gone, and there are no tokens', async () => {
    const { check, rewrite, logger, request } = await reloaded('keystone_auth = true');
    for (const lines of [[], ['keystone_auth = false']]) {
      expect(await rewrite(lines)).toBe(false);
      expect(await check()).toBe(401);
      expect((await request('/')).status).toBe(401);
    }
    expect(logger.lines.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/\[service\] keystone_auth: .*everyone could ask; restart to accept it/),
    );
    expect(await rewrite(['tokens = s3cret-0123456789abcdef'])).toBe(true);
    expect(await check(TOKEN)).toBe(401);
    expect(await check(SECRET)).toBe(204);
  });

  it('may replace the tokens with keystone_auth', async () => {
    const { check, rewrite, request } = await reloaded('tokens = s3cret-0123456789abcdef');
    expect(await check(TOKEN)).toBe(401);
    expect(await rewrite(['keystone_auth = true'])).toBe(true);
    expect(await check(TOKEN)).toBe(204);
    expect(await check(SECRET)).toBe(401);
    expect(await check()).toBe(401);
    expect((await request('/', { headers: sends(SECRET) })).status).toBe(401);
  });

  it('with keystone_auth and no [keystone] is refused, with its line', async () => {
    const { check, rewrite, logger } = await reloaded('keystone_auth = true');
    expect(await rewrite(['keystone_auth = true'], '')).toBe(false);
    expect(logger.lines.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/:6: \[service\] keystone_auth: expected an account in \[keystone\]/),
    );
    expect(await check(TOKEN)).toBe(204);
  });
});
