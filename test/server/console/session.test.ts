import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { request as requestTls } from 'node:https';
import { describe, expect, it, vi } from 'vitest';
import { projectFile } from '../../support/files.ts';
import { type Visitor, visitor, visitService } from './visitor.ts';

const COOKIE = 'blazar-enforcement-session';
const RIGHT = 's3cret-0123456789abcdef';
const withTokens = (...tokens: string[]) => visitService(`[service]\ntokens = ${tokens.join(',')}\n`);

const logIn = ({ send }: Visitor) => send('/login', { token: RIGHT });

/** Whether the page is shown, and not the login form. */
const isIn = async (visit: Visitor, headers?: Record<string, string>) => {
  const { status, text, html } = await visit.get('/', headers);
  const shown = text.includes('Enabled filters');
  expect({ status, form: html.includes('action="/login"') }).toEqual({
    status: shown ? 200 : 401,
    form: !shown,
  });
  return shown;
};

describe('without a session', () => {
  it('the page is a form that asks for a token, with the status 401', async () => {
    const { get } = await withTokens(RIGHT);
    const { status, html, text } = await get();
    expect(status).toBe(401);
    expect(html).toContain('<label for="token">');
    expect(text).not.toMatch(/max_lease_duration|Enabled filters/);
    expect((await get(`/?token=${RIGHT}&X-Auth-Token=${RIGHT}`)).status, 'not in the address').toBe(401);
  });

  it('the token may come as X-Auth-Token, as in the protocol', async () => {
    const visit = await withTokens(RIGHT, 'n3xt-0123456789abcdef');
    expect(await isIn(visit, { 'X-Auth-Token': 'n3xt-0123456789abcdef' })).toBe(true);
    expect(await isIn(visit, { 'X-Auth-Token': 'wrong' })).toBe(false);
    expect(visit.cookie()).toBe('');
  });

  it('the page is shown where no token is asked for, and the login leads to it', async () => {
    const visit = await visitService('');
    expect(await isIn(visit)).toBe(true);
    expect((await visit.get()).text).not.toContain('Log out');
    const { status, headers } = await visit.send('/login', { token: 'any' });
    expect({ status, to: headers.get('Location'), cookie: visit.cookie() }).toEqual({
      status: 303,
      to: '/',
      cookie: '',
    });
  });
});

describe('logging in', () => {
  it('sets a cookie that scripts and other sites do not get, and leads to the page', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 11, 1, 9) });
    const visit = await withTokens(RIGHT);
    const { status, headers } = await logIn(visit);
    expect({ status, to: headers.get('Location') }).toEqual({ status: 303, to: '/' });
    expect(headers.get('Set-Cookie')).toMatch(
      new RegExp(
        `^${COOKIE}=[\\w-]{43}; path=/; expires=Tue, 01 Dec 2026 17:00:00 GMT; samesite=strict; httponly$`,
      ),
    );
    expect(await isIn(visit)).toBe(true);
  });

  it('with a wrong token shows the form again, with the status 401', async () => {
    const visit = await withTokens(RIGHT);
    for (const token of ['', 'wrong', 'S3CRET-0123456789abcdef', ` ${RIGHT}`, `${RIGHT},`, 's3cre']) {
      const { status, html, headers } = await visit.send('/login', { token });
      expect({ token, status, cookie: headers.get('Set-Cookie') }).toEqual({
        token,
        status: 401,
        cookie: null,
      });
      expect(html).toContain('This token is not accepted.');
    }
    expect((await visit.send('/login', '')).status).toBe(401);
    expect((await visit.send('/login', `token[]=${RIGHT}&token.x=${RIGHT}`)).status).toBe(401);
    expect(await isIn(visit)).toBe(false);
  });

  it('never shows a token, and logs none', async () => {
    const { send, get, logger } = await withTokens(RIGHT);
    const visits = [
      await send('/login', { token: 'gu<ess' }),
      await send('/login', { token: RIGHT }),
      await get(),
      await send('/login', `token=${RIGHT}`, { 'Content-Type': 'text/plain' }),
    ];
    const seen = visits.map(({ html, headers }) => html + JSON.stringify([...headers])).join();
    expect(seen + JSON.stringify(logger.lines)).not.toMatch(/s3cret-0123456789abcdef|gu(<|&lt;)ess/);
  });

  it('takes a form of at most 16 KiB, and nothing but a form', async () => {
    const { send } = await withTokens(RIGHT);
    const ofLength = (more: number) => send('/login', `token=${RIGHT}&more=${'x'.repeat(more)}`);
    expect([(await ofLength(16_349)).status, (await ofLength(16_350)).status]).toEqual([303, 413]);
    const type = { 'Content-Type': 'application/json' };
    expect((await send('/login', `token=${RIGHT}`, type)).status).toBe(415);
  });

  it('is asked for at / when somebody opens its address', async () => {
    const { get } = await withTokens(RIGHT);
    const { status, headers } = await get('/login');
    expect({ status, to: headers.get('Location') }).toEqual({ status: 303, to: '/' });
  });

  it('over TLS sets a cookie for TLS only', async () => {
    const tls = `tls_cert_file = ${projectFile('test/fixtures/tls/server.pem')}\ntls_key_file = ${projectFile('test/fixtures/tls/server.key')}\n`;
    const { url } = await visitService(`[service]\ntokens = ${RIGHT}\n${tls}`);
    expect(await loginOverTls(url)).toMatch(/^__Host-.*; samesite=strict; secure; httponly$/);
  });
});

function loginOverTls(url: string): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const request = requestTls(`${url}/login`, {
      method: 'POST',
      // Whose certificate it is is tested where TLS is.
      rejectUnauthorized: false,
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    });
    request.on('response', (answer) => resolve(answer.resume().headers['set-cookie']?.[0]));
    request.on('error', reject);
    request.end(`token=${RIGHT}`);
  });
}

describe('a session', () => {
  it('ends when somebody logs out', async () => {
    const visit = await withTokens(RIGHT);
    await logIn(visit);
    expect((await visit.get()).html).toContain('<form method="post" action="/logout">');
    const { status, headers } = await visit.send('/logout', {});
    expect({ status, to: headers.get('Location') }).toEqual({ status: 303, to: '/' });
    expect(headers.get('Set-Cookie')).toBe(
      `${COOKIE}=; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT; samesite=strict; httponly`,
    );
    expect(await isIn(visit)).toBe(false);
  });

  it('ends with the token that opened it, and with no other', async () => {
    const first = await withTokens('old-0123456789abcdef', 'new-0123456789abcdef');
    const second = visitor(first.url);
    await first.send('/login', { token: 'old-0123456789abcdef' });
    await second.send('/login', { token: 'new-0123456789abcdef' });
    // Seen by the service with both tokens before one goes: neither session passes to the other token.
    expect([await isIn(first), await isIn(second)]).toEqual([true, true]);
    writeFileSync(first.file, '[service]\ntokens = newest-0123456789abcdef,new-0123456789abcdef\n');
    await first.reload();
    expect([await isIn(first), await isIn(second)]).toEqual([false, true]);
    writeFileSync(first.file, '[service]\ntokens = newest-0123456789abcdef\n');
    await first.reload();
    expect([await isIn(first), await isIn(second)]).toEqual([false, false]);
  });

  it('that has ended is over for whoever has kept its cookie, for good', async () => {
    const visit = await withTokens(RIGHT);
    await logIn(visit);
    const kept = { Cookie: visit.cookie() };
    const thief = visitor(visit.url);
    expect(await isIn(thief, kept)).toBe(true);
    await visit.send('/logout', {});
    await logIn(visit);
    await visit.reload();
    expect(await isIn(thief, kept)).toBe(false);
    // A replica with the same tokens, or the process that comes after this one.
    expect(await isIn(await withTokens(RIGHT), kept)).toBe(false);
  });

  it('ends with the next login of the same browser', async () => {
    const visit = await withTokens(RIGHT);
    await logIn(visit);
    const before = { Cookie: visit.cookie() };
    await logIn(visit);
    expect([await isIn(visit), await isIn(visitor(visit.url), before)]).toEqual([true, false]);
  });

  it('lasts as long as is configured, and a reload makes it shorter at once', async () => {
    const start = Date.UTC(2026, 11, 1, 9);
    vi.useFakeTimers({ toFake: ['Date'], now: start });
    const conf = (seconds: number) => `[service]\ntokens = ${RIGHT}\nsession_lifetime = ${seconds}\n`;
    const visit = await visitService(conf(120));
    const { headers } = await logIn(visit);
    expect(headers.get('Set-Cookie')).toContain('expires=Tue, 01 Dec 2026 09:02:00 GMT');
    vi.setSystemTime(start + 119_999);
    expect(await isIn(visit)).toBe(true);
    writeFileSync(visit.file, conf(60));
    await visit.reload();
    expect(await isIn(visit)).toBe(false);
    vi.setSystemTime(start);
    expect(await isIn(visit), 'it has ended').toBe(false);
  });

  it('can not be made up', async () => {
    const visit = await withTokens(RIGHT);
    await logIn(visit);
    const [, id = ''] = /=(.*)$/.exec(visit.cookie()) ?? [];
    const others = visitor(visit.url);
    expect(await isIn(others, { Cookie: `${COOKIE}=${id}` })).toBe(true);
    const hash = createHash('sha256').update(id);
    const hashes = [hash.copy().digest('base64'), hash.copy().digest('base64url'), hash.digest('hex')];
    const made = ['', `${id}x`, id.slice(1), id.toUpperCase(), RIGHT, '__proto__', '9'.repeat(4000)];
    for (const value of [...made, ...hashes]) {
      expect(await isIn(others, { Cookie: `${COOKIE}=${value}` }), value).toBe(false);
    }
    expect(await isIn(others, { Cookie: `session=${id}` })).toBe(false);
  });
});
