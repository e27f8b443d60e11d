import { writeFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { temporaryFile } from '../support/files.ts';
import { recordedAnswer, recordedKeystone, tokenAnswer } from '../support/recorded-keystone.ts';
import { unusedPort } from '../support/unused-port.ts';
import { failureOf, keystoneAt, PASSWORD } from './keystone-client.ts';

const SOON = { timeout: 120_000, interval: 5 };

/** Answers every request for a token with another one: token-1, token-2, … */
const issuing = (seconds?: number) =>
  recordedKeystone((_request, count) => tokenAnswer(`token-${count}`, seconds));

/** The seconds, from 1 on, in which a count grew; `first` is the one before. */
const secondsOfMore = (counts: readonly number[], first: number) =>
  counts.flatMap((count, index) => (count > (counts[index - 1] ?? first) ? index + 1 : []));

describe('our token', () => {
  it('is asked for as Keystone wants it', async () => {
    const server = await issuing();
    const keystone = keystoneAt(server.url, { user_domain_id: 'default', project_domain_name: 'other' });
    expect(await keystone.token()).toBe('token-1');
    expect(server.requests).toMatchObject([{ method: 'POST', url: '/v3/auth/tokens' }]);
    const user = { name: 'blazar', domain: { id: 'default' }, password: PASSWORD };
    const identity = { methods: ['password'], password: { user } };
    const scope = { project: { name: 'service', domain: { name: 'other' } } };
    expect(JSON.parse(server.requests[0]?.body ?? '')).toEqual({ auth: { identity, scope } });
  });

  it('is asked for with an application credential, which has a project', async () => {
    const server = await recordedKeystone(() =>
      tokenAnswer('token-1', 3600, 'token of an application credential'),
    );
    const keystone = keystoneAt(server.url, {
      application_credential_id: 'a1',
      application_credential_secret: PASSWORD,
    });
    expect(await keystone.token()).toBe('token-1');
    const identity = {
      methods: ['application_credential'],
      application_credential: { id: 'a1', secret: PASSWORD },
    };
    expect(JSON.parse(server.requests[0]?.body ?? '')).toEqual({ auth: { identity } });
  });

  it('is one for all who ask, at the same time and later', async () => {
    const server = await issuing();
    const keystone = keystoneAt(server.url);
    const tokens = await Promise.all(Array.from({ length: 50 }, () => keystone.token()));
    keystone.pass(3000);
    expect(new Set([...tokens, await keystone.token()])).toEqual(new Set(['token-1']));
    expect(server.requests).toHaveLength(1);
  });

  it('is renewed before it expires, and nobody waits for that', async () => {
    const server = await issuing();
    const keystone = keystoneAt(server.url);
    await keystone.token();
    keystone.pass(3600 - 119);
    expect(await Promise.all([keystone.token(), keystone.token()])).toEqual(['token-1', 'token-1']);
    await expect.poll(() => keystone.token()).toBe('token-2');
    expect(server.requests).toHaveLength(2);
  });

  it('is waited for when it has expired', async () => {
    const server = await issuing();
    const keystone = keystoneAt(server.url);
    await keystone.token();
    keystone.pass(3600);
    expect(await Promise.all([keystone.token(), keystone.token()])).toEqual(['token-2', 'token-2']);
  });

  it('lives as long by a clock that is wrong', async () => {
    const server = await issuing();
    const keystone = keystoneAt(server.url);
    keystone.pass(-86_400 * 365);
    await keystone.token();
    keystone.pass(3000);
    expect(await keystone.token()).toBe('token-1');
    keystone.pass(600);
    expect(await keystone.token()).toBe('token-2');
  });

  it('is used for three quarters of a short life', async () => {
    const server = await issuing(8);
    const keystone = keystoneAt(server.url);
    await keystone.token();
    keystone.pass(5);
    await keystone.token();
    expect(server.requests).toHaveLength(1);
    keystone.pass(1);
    await keystone.token();
    await expect.poll(() => server.requests).toHaveLength(2);
  });

  it('is used until it expires while Keystone is away, with one warning', async () => {
    let isAway = false;
    const server = await recordedKeystone((_request, count) =>
      isAway ? (response) => void response.destroy() : tokenAnswer(`token-${count}`),
    );
    const keystone = keystoneAt(server.url);
    await keystone.token();
    isAway = true;
    keystone.pass(3480);
    for (let renewal = 1; renewal <= 3; renewal += 1) {
      await vi.waitFor(async () => {
        keystone.pass(5);
        expect(await keystone.token()).toBe('token-1');
        expect(server.requests).toHaveLength(1 + renewal);
      }, SOON);
      await keystone.token();
      expect(server.requests).toHaveLength(1 + renewal);
    }
    expect(keystone.logger.lines).toEqual([expect.objectContaining({ level: 'warn' })]);
    keystone.pass(120);
    expect(await failureOf(keystone.token())).toMatch(/^POST http:\S+\/v3\/auth\/tokens: no usable answer/);
    isAway = false;
    expect(await keystone.token()).toMatch(/^token-/);
  });

  it('is another one after a refusal, but not at every refusal', async () => {
    const server = await issuing();
    const keystone = keystoneAt(server.url);
    keystone.refused(await keystone.token());
    keystone.refused('token-1');
    expect(await keystone.token()).toBe('token-2');
    const refusals: number[] = [];
    for (let second = 1; second <= 200; second += 1) {
      keystone.pass(1);
      keystone.refused('token-1');
      keystone.refused(await keystone.token());
      await keystone.token();
      refusals.push(server.requests.length);
    }
    expect(secondsOfMore(refusals, 2)).toEqual([1, 3, 7, 15, 31, 63, 123, 183]);
    keystone.pass(120);
    keystone.refused(await keystone.token());
    await keystone.token();
    keystone.pass(1);
    keystone.refused(await keystone.token());
    await keystone.token();
    expect(server.requests).toHaveLength(12);
  });

  it('is not asked for by a caller that has given up, and goes on for the others', async () => {
    let answer: (() => void) | undefined;
    const server = await recordedKeystone(() => (response) => {
      answer = () => {
        const { status, headers, body } = tokenAnswer('token-1');
        response.writeHead(status, headers).end(body);
      };
    });
    const keystone = keystoneAt(server.url);
    const withLockTimeouts = new AbortController();
    const first = keystone.token({ signal: withLockTimeouts.signal });
    const second = keystone.token();
    await expect.poll(() => answer).toBeDefined();
    withLockTimeouts.abort(new Error('no time'));
    await expect(first).rejects.toThrow('no time');
    answer?.();
    expect(await second).toBe('token-1');
    await expect(keystone.token({ signal: withLockTimeouts.signal })).rejects.toThrow('no time');
  });
});

describe('a refused account', () => {
  it('is not tried again at once, because Keystone may lock it', async () => {
    const server = await recordedKeystone(() => recordedAnswer('wrong password'));
    const keystone = keystoneAt(server.url);
    for (let call = 0; call < 5; call += 1) {
      expect(await failureOf(keystone.token())).toMatch(/Keystone refuses the account of \[keystone\]/);
    }
    expect(server.requests).toHaveLength(1);
    const tried: number[] = [];
    for (let second = 1; second <= 200; second += 1) {
      keystone.pass(1);
      await failureOf(keystone.token());
      tried.push(server.requests.length);
    }
    expect(secondsOfMore(tried, 1)).toEqual([1, 3, 7, 15, 31, 63, 123, 183]);
  });

  it('is tried at once with another password', async () => {
    const server = await recordedKeystone(({ body }, count) =>
      body.includes('new-password') ? tokenAnswer(`token-${count}`) : recordedAnswer('wrong password'),
    );
    const file = temporaryFile('password', `${PASSWORD}\n`);
    const keystone = keystoneAt(server.url, { password: undefined, password_file: file });
    await failureOf(keystone.token());
    writeFileSync(file, 'new-password\n');
    expect(await keystone.token()).toBe('token-2');
  });
});

it('reads the password again for the next token', async () => {
  const server = await issuing();
  const file = temporaryFile('password', 'one');
  const keystone = keystoneAt(server.url, { password: undefined, password_file: file });
  await keystone.token();
  writeFileSync(file, '');
  keystone.refused('token-1');
  expect(await failureOf(keystone.token())).toContain(`password_file ${file}: expected one line`);
  writeFileSync(file, 'two');
  expect(await keystone.token()).toBe('token-2');
  const passwords = server.requests.map(({ body }) => JSON.parse(body).auth.identity.password.user.password);
  expect(passwords).toEqual(['one', 'two']);
});

it('says that nobody answers', async () => {
  const keystone = keystoneAt(`http://127.0.0.1:${await unusedPort()}`);
  expect(await failureOf(keystone.token())).toMatch(/ECONNREFUSED/);
});

it('gives no token after it was closed', async () => {
  const server = await issuing();
  const keystone = keystoneAt(server.url);
  await keystone.close();
  expect(await failureOf(keystone.token())).toBe('the client of Keystone was closed');
});
