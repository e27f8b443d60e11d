import Koa, { type Context } from 'koa';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Caller, tokenCaller } from '../../../src/server/users/caller.ts';
import { isCsrf, type Proof, Sessions } from '../../../src/server/users/sessions.ts';

const OPERATOR = tokenCaller('operator', 'operator token');

/** A request with these cookies, over TLS or not. */
function request(cookie = '', headers: Record<string, string> = {}): Context {
  const app = new Koa();
  const set: Record<string, unknown> = {};
  const response = {
    getHeader: (name: string) => set[name.toLowerCase()],
    setHeader: (name: string, value: unknown) => {
      set[name.toLowerCase()] = value;
    },
  };
  const ctx = app.createContext(
    { headers: { ...(cookie !== '' && { cookie }), ...headers }, socket: {} } as never,
    response as never,
  );
  ctx.state = { generation: { options: { session_lifetime: 3600 } } };
  return ctx;
}

/** `name=value` of the cookie that was set. */
function cookieOf(ctx: Context): string {
  const all = [ctx.res.getHeader('set-cookie')].flat().map(String);
  return all.find((one) => !one.includes('=;'))?.split(';')[0] ?? '';
}

const proofOf = (caller: Caller | undefined, identity = 'token', isShared = false): Proof => ({
  ...{ identity, isShared },
  owner: async () => caller,
});

afterEach(() => {
  vi.useRealTimers();
});

describe('Sessions', () => {
  it('knows the caller of a cookie, until the proof is gone, for good', async () => {
    const sessions = new Sessions();
    const login = request();
    let caller: Caller | undefined = OPERATOR;
    sessions.open(login, { ...proofOf(OPERATOR), owner: async () => caller });
    expect(await sessions.callerOf(request(cookieOf(login)))).toBe(OPERATOR);
    caller = undefined;
    expect(await sessions.callerOf(request(cookieOf(login)))).toBeUndefined();
    caller = OPERATOR;
    expect(await sessions.callerOf(request(cookieOf(login)))).toBeUndefined();
    expect(sessions.csrfOf(request(cookieOf(login)))).toBe('');
  });

  it('knows nobody by two cookies, of which one may be that of a neighbour in the domain, and ends both', async () => {
    const sessions = new Sessions();
    const [mine, theirs] = [request(), request()];
    sessions.open(mine, proofOf(OPERATOR));
    sessions.open(theirs, proofOf(tokenCaller('reader', 'a neighbour')));
    const both = `${cookieOf(theirs)}; ${cookieOf(mine)}`;
    for (const cookie of [
      both,
      `${cookieOf(mine)};${cookieOf(theirs)}`,
      `${cookieOf(mine)}; ${cookieOf(mine)}`,
    ]) {
      expect(await sessions.callerOf(request(cookie))).toBeUndefined();
      expect(sessions.csrfOf(request(cookie))).toBe('');
    }
    expect(await sessions.callerOf(request(`other=1; ${cookieOf(mine)}; x`))).toBe(OPERATOR);
    sessions.end(request(both));
    expect(await sessions.callerOf(request(cookieOf(mine)))).toBeUndefined();
    expect(await sessions.callerOf(request(cookieOf(theirs)))).toBeUndefined();
  });

  it.for(['https', 'HTTPS', 'https, http', ' https ,https'])(
    'sends its cookie over TLS only behind proxies that say %s',
    (proto) => {
      const login = request('', { 'x-forwarded-proto': proto });
      new Sessions().open(login, proofOf(OPERATOR));
      expect(String(login.res.getHeader('set-cookie'))).toMatch(/__Host-[^;]*;.*secure/);
      const plain = request('', { 'x-forwarded-proto': 'http, https' });
      new Sessions().open(plain, proofOf(OPERATOR));
      expect(String(plain.res.getHeader('set-cookie'))).not.toContain('secure');
    },
  );

  it('keeps a session whose proof cannot be asked about now', async () => {
    const sessions = new Sessions();
    const login = request();
    const owner = vi.fn<Proof['owner']>().mockRejectedValueOnce(new Error('503')).mockResolvedValue(OPERATOR);
    sessions.open(login, { ...proofOf(OPERATOR), owner });
    await expect(sessions.callerOf(request(cookieOf(login)))).rejects.toThrow('503');
    expect(await sessions.callerOf(request(cookieOf(login)))).toBe(OPERATOR);
  });

  it('lets nobody through who has logged out while the proof was asked', async () => {
    const sessions = new Sessions();
    const login = request();
    let answer = (_: Caller) => {};
    sessions.open(login, { ...proofOf(OPERATOR), owner: () => new Promise((resolve) => (answer = resolve)) });
    const asked = sessions.callerOf(request(cookieOf(login)));
    sessions.end(request(cookieOf(login)));
    answer(OPERATOR);
    expect(await asked).toBeUndefined();
  });

  it('has a token for forms that is another for every session, and the same during it', () => {
    const sessions = new Sessions();
    const [one, other] = [request(), request()];
    sessions.open(one, proofOf(OPERATOR));
    sessions.open(other, proofOf(OPERATOR));
    const csrf = sessions.csrfOf(request(cookieOf(one)));
    expect(csrf).toMatch(/^[\w-]{43}$/);
    expect(sessions.csrfOf(request(cookieOf(one)))).toBe(csrf);
    expect(sessions.csrfOf(request(cookieOf(other)))).not.toBe(csrf);
    expect(cookieOf(one)).not.toContain(csrf);
    expect(isCsrf(csrf, csrf)).toBe(true);
    for (const sent of [null, '', 'x', `${csrf}x`, csrf.toLowerCase()]) {
      expect(isCsrf(csrf, sent), String(sent)).toBe(false);
    }
    expect(isCsrf('', ''), 'without a session').toBe(false);
  });

  it('binds the cookie to the host over TLS, and takes no other there', async () => {
    const sessions = new Sessions();
    const tls = { 'x-forwarded-proto': 'https' };
    const login = request('', tls);
    sessions.open(login, proofOf(OPERATOR));
    const cookie = cookieOf(login);
    expect(cookie).toMatch(/^__Host-blazar-enforcement-session=/);
    expect(await sessions.callerOf(request(cookie, tls))).toBe(OPERATOR);
    expect(await sessions.callerOf(request(cookie.replace('__Host-', ''), tls))).toBeUndefined();
    expect(await sessions.callerOf(request(cookie))).toBeUndefined();
  });

  it('keeps twenty of one user: whoever logs in again and again ends no session of others', async () => {
    const sessions = new Sessions();
    const alice = request();
    sessions.open(alice, proofOf(OPERATOR, 'keystone alice'));
    const mallory = Array.from({ length: 1100 }, () => request());
    for (const one of mallory) {
      sessions.open(one, proofOf(OPERATOR, 'keystone mallory'));
    }
    expect(await sessions.callerOf(request(cookieOf(alice)))).toBe(OPERATOR);
    const open = await Promise.all(mallory.map((one) => sessions.callerOf(request(cookieOf(one)))));
    expect(open.map((caller) => caller !== undefined)).toEqual(mallory.map((_, index) => index >= 1080));
  });

  it('keeps two hundred of one shared token: the newest give way to each other', async () => {
    const sessions = new Sessions();
    const guests = Array.from({ length: 300 }, () => request());
    for (const guest of guests) {
      expect(sessions.open(guest, proofOf(OPERATOR, 'token reader', true))).toBe(true);
    }
    const open = await Promise.all(guests.map((one) => sessions.callerOf(request(cookieOf(one)))));
    expect(open.map((caller) => caller !== undefined)).toEqual(
      guests.map((_, index) => index < 199 || index === 299),
    );
  });

  it('of those that there may be, whoever has most gives way, and nobody loses the only one', async () => {
    const sessions = new Sessions(100);
    const open = (identity: string) => {
      const login = request();
      return sessions.open(login, proofOf(OPERATOR, identity)) ? cookieOf(login) : undefined;
    };
    const mallory = Array.from({ length: 20 }, () => open('mallory'));
    const single = Array.from({ length: 80 }, (_, index) => open(`user ${index}`));
    const others = Array.from({ length: 19 }, (_, index) => open(`other ${index}`));
    expect(others).not.toContain(undefined);
    expect(open('one too many'), 'everybody has one').toBeUndefined();
    const isOpen = async (cookie = '') => (await sessions.callerOf(request(cookie))) !== undefined;
    expect(await Promise.all(mallory.map(isOpen))).toEqual(mallory.map((_, index) => index === 19));
    expect(await Promise.all([...single, ...others].map(isOpen))).not.toContain(false);
    expect(await isOpen(open('user 0')), 'in place of their own').toBe(true);
  });

  it('makes room for others when sessions have expired', () => {
    const start = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: start });
    const sessions = new Sessions(100);
    for (let index = 0; index < 100; index += 1) {
      sessions.open(request(), proofOf(OPERATOR, `user ${index}`));
    }
    expect(sessions.open(request(), proofOf(OPERATOR, 'late'))).toBe(false);
    vi.setSystemTime(start + 3_600_000);
    expect(sessions.open(request(), proofOf(OPERATOR, 'late'))).toBe(true);
  });
});
