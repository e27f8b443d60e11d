import { setTimeout as pause } from 'node:timers/promises';
import Koa, { type Context } from 'koa';
import { sql } from 'kysely';
import { describe, expect, it, vi } from 'vitest';
import { LedgerUnavailableError } from '../../../../src/base/errors.ts';
import { type Database, rows } from '../../../../src/ledger/storage/database.ts';
import { type Caller, tokenCaller } from '../../../../src/server/users/caller.ts';
import {
  BOUNDS,
  MemorySessions,
  type SessionBounds,
  type SessionStore,
} from '../../../../src/server/users/sessions/session-store.ts';
import { SessionTable } from '../../../../src/server/users/sessions/session-table.ts';
import {
  isCsrf,
  NO_SESSION_NOW,
  Sessions,
  TOO_MANY_SESSIONS,
} from '../../../../src/server/users/sessions/sessions.ts';
import { digest, type StoredProof } from '../../../../src/server/users/sessions/stored-session.ts';
import { DIALECTS, NO_WAIT } from '../../../support/ledgers.ts';
import { recordingLogger } from '../../../support/logger.ts';
import { withResolvers } from '../../../support/with-resolvers.ts';
import { databaseOf } from '../databases.ts';

const OPERATOR = tokenCaller('operator', 'operator token');
const HOUR = 3_600_000;
/** In milliseconds: then it is asked again whether the session is there. */
const LONG_ENOUGH = 60;
const TLS = { 'x-forwarded-proto': 'https' };

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
  ctx.state = { requestId: 'req-1', generation: { options: { session_lifetime: 3600, deadline: 30 } } };
  return ctx;
}

/** `name=value` of the cookie that was set. */
function cookieOf(ctx: Context): string {
  const all = [ctx.res.getHeader('set-cookie')].flat().map(String);
  return all.find((one) => !one.includes('=;'))?.split(';')[0] ?? '';
}

type Owner = () => Promise<Caller | undefined>;
/** By the key that is kept. */
const owners = new Map<string, Owner>();

/** Of a token that many share, or of a user. */
function proofOf(owner: Caller | Owner = OPERATOR, identity = 'token reader', isShared = false): StoredProof {
  const key = crypto.randomUUID();
  owners.set(key, typeof owner === 'function' ? owner : async () => owner);
  return isShared ? { kind: 'token', identity, key } : { kind: 'keystone', userId: identity, scoped: key };
}

const ownerOf = async (_: Context, { kept }: { readonly kept: StoredProof }) =>
  owners.get(kept.kind === 'token' ? kept.key : kept.kind === 'keystone' ? kept.scoped : '')?.();

/** The clock is that of the process, which tests set. */
const STORES: Record<string, (bounds?: SessionBounds) => Promise<SessionStore>> = {
  memory: async (bounds) => new MemorySessions(bounds),
  sqlite: async (bounds = BOUNDS) => new SessionTable(await databaseOf('sqlite'), { bounds }),
  postgresql: async (bounds = BOUNDS) =>
    new SessionTable(await databaseOf('postgresql'), { bounds, now: () => Date.now() }),
};

/** Sessions with what tests do: log in, which leads to a cookie or a sentence, and ask whose a cookie is. */
function sessionsIn(memory: SessionStore, logger = recordingLogger()) {
  const sessions = new Sessions({ ownerOf, logger, memory });
  const logIn = async (...proof: Parameters<typeof proofOf>) => {
    const login = request();
    return (await sessions.open(login, proofOf(...proof))) ?? cookieOf(login);
  };
  const callerOf = (cookie: string, headers = {}) => sessions.callerOf(request(cookie, headers));
  const areOpen = (cookies: readonly string[]) =>
    Promise.all(cookies.map(async (cookie) => (await callerOf(cookie)) !== undefined));
  /** One after the other. */
  const logInMany = async (count: number, nameOf: (index: number) => string, isShared = false) => {
    const cookies: string[] = [];
    for (let index = 0; index < count; index += 1) {
      cookies.push(await logIn(OPERATOR, nameOf(index), isShared));
    }
    return cookies;
  };
  return {
    sessions,
    logIn,
    logInMany,
    callerOf,
    areOpen,
    end: (cookie: string) => sessions.end(request(cookie)),
  };
}

function setClock(): { readonly start: number } {
  const start = Date.now();
  vi.useFakeTimers({ toFake: ['Date'], now: start });
  return { start };
}

it('there are ten thousand, twenty of a user, and two hundred of a token', () => {
  expect(BOUNDS).toEqual({ all: 10_000, ofUser: 20, ofToken: 200 });
});

describe.each(Object.entries(STORES))('Sessions in %s', (_, storeOf) => {
  const newSessions = async (bounds: Partial<SessionBounds> = {}) =>
    sessionsIn(await storeOf({ ...BOUNDS, ...bounds }));

  it('knows the caller of a cookie, until the proof is gone, for good', async () => {
    const { sessions, logIn, callerOf } = await newSessions();
    let caller: Caller | undefined = OPERATOR;
    const cookie = await logIn(async () => caller);
    expect(await callerOf(cookie)).toEqual(OPERATOR);
    caller = undefined;
    expect(await callerOf(cookie)).toBeUndefined();
    caller = OPERATOR;
    expect(await callerOf(cookie)).toBeUndefined();
    expect(sessions.csrfOf(request(cookie))).toBe('');
  });

  it('knows nobody by two cookies, of which one may be that of a neighbour in the domain, and ends both', async () => {
    const { logIn, callerOf, areOpen, end } = await newSessions();
    const mine = await logIn();
    const theirs = await logIn(tokenCaller('reader', 'a neighbour'));
    const both = `${theirs}; ${mine}`;
    expect(await areOpen([both, `${mine};${theirs}`, `${mine}; ${mine}`])).toEqual([false, false, false]);
    expect(await callerOf(`other=1; ${mine}; x`)).toEqual(OPERATOR);
    await end(both);
    expect(await areOpen([mine, theirs])).toEqual([false, false]);
  });

  it('keeps a session whose proof cannot be asked about now', async () => {
    const { logIn, callerOf } = await newSessions();
    const owner = vi.fn<Owner>().mockRejectedValueOnce(new Error('503')).mockResolvedValue(OPERATOR);
    const cookie = await logIn(owner);
    await expect(callerOf(cookie)).rejects.toThrow('503');
    expect(await callerOf(cookie)).toEqual(OPERATOR);
  });

  it('lets nobody through who has logged out while the proof was asked', async () => {
    const { logIn, callerOf, end } = await newSessions();
    let answer: ((caller: Caller) => void) | undefined;
    const owner = vi.fn<Owner>(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    const cookie = await logIn(owner);
    const asked = callerOf(cookie);
    await expect.poll(() => owner).toHaveBeenCalled();
    await end(cookie);
    await pause(LONG_ENOUGH);
    answer?.(OPERATOR);
    expect(await asked).toBeUndefined();
  });

  it('has a token for forms that is another for every session, and the same during it', async () => {
    const { sessions, logIn } = await newSessions();
    const csrfOf = async (cookie: string) => {
      const ctx = request(cookie);
      await sessions.callerOf(ctx);
      return sessions.csrfOf(ctx);
    };
    const one = await logIn();
    const other = await logIn();
    const csrf = await csrfOf(one);
    expect(csrf).toMatch(/^[\w-]{43}$/);
    expect(await csrfOf(one)).toBe(csrf);
    expect(await csrfOf(other)).not.toBe(csrf);
    expect(one).not.toContain(csrf);
    expect(isCsrf(csrf, csrf)).toBe(true);
    for (const sent of [null, '', 'x', `${csrf}x`, csrf.toLowerCase()]) {
      expect(isCsrf(csrf, sent), String(sent)).toBe(false);
    }
    expect(isCsrf('', ''), 'without a session').toBe(false);
  });

  it('keeps a few of one user: whoever logs in again and again ends no session of others', async () => {
    const { logIn, logInMany, callerOf, areOpen } = await newSessions({ ofUser: 5 });
    const alice = await logIn(OPERATOR, 'alice');
    const mallory = await logInMany(12, () => 'mallory');
    expect(await callerOf(alice)).toEqual(OPERATOR);
    expect(await areOpen(mallory)).toEqual(mallory.map((_, index) => index >= 7));
  });

  it('keeps a few of one shared token: the newest give way to each other', async () => {
    const { logInMany, areOpen } = await newSessions({ ofToken: 8 });
    const guests = await logInMany(12, () => 'token reader', true);
    expect(await areOpen(guests)).toEqual(guests.map((_, index) => index < 7 || index === 11));
  });

  it('of those that there may be, whoever has most gives way, and nobody loses the only one', async () => {
    const { logIn, logInMany, areOpen } = await newSessions({ all: 20, ofUser: 5 });
    const mallory = await logInMany(5, () => 'mallory');
    const single = await logInMany(15, (index) => `user ${index}`);
    const others = await logInMany(4, (index) => `other ${index}`);
    expect(others).not.toContain(TOO_MANY_SESSIONS);
    expect(await logIn(OPERATOR, 'one too many'), 'everybody has one').toBe(TOO_MANY_SESSIONS);
    expect(await areOpen(mallory)).toEqual(mallory.map((_, index) => index === 4));
    expect(await areOpen([...single, ...others])).not.toContain(false);
    expect(await areOpen([await logIn(OPERATOR, 'user 0')]), 'in place of their own').toEqual([true]);
  });

  it('makes room for others when sessions have expired', async () => {
    const { start } = setClock();
    const { logIn, logInMany } = await newSessions({ all: 10 });
    await logInMany(10, (index) => `user ${index}`);
    expect(await logIn(OPERATOR, 'late')).toBe(TOO_MANY_SESSIONS);
    vi.setSystemTime(start + HOUR);
    expect(await logIn(OPERATOR, 'late')).not.toBe(TOO_MANY_SESSIONS);
  });

  it('ends a session whose clock was set back', async () => {
    const { start } = setClock();
    const { logIn, areOpen } = await newSessions();
    const cookie = await logIn();
    vi.setSystemTime(start + HOUR - 1);
    expect(await areOpen([cookie])).toEqual([true]);
    vi.setSystemTime(start - 1);
    expect(await areOpen([cookie])).toEqual([false]);
    vi.setSystemTime(start);
    expect(await areOpen([cookie]), 'for good').toEqual([false]);
  });

  it('keeps no more than twenty of a user who logs in many times at once', async () => {
    const { logIn, areOpen } = await newSessions();
    const cookies = await Promise.all(Array.from({ length: 30 }, () => logIn(OPERATOR, 'mallory')));
    expect((await areOpen(cookies)).filter(Boolean)).toHaveLength(20);
  });

  it('lets one of two requests change what is kept', async () => {
    const store = await storeOf();
    const row = { name: 'n', owner: 'o', isShared: false, sub: null, sid: null, sealed: 'first' };
    await store.open(row, { lifetime: HOUR, instead: [] }, NO_WAIT);
    const replaced = await Promise.all(
      ['second', 'third'].map((sealed) => store.replace('n', 1, sealed, NO_WAIT)),
    );
    expect(replaced.filter(Boolean)).toHaveLength(1);
    const { sealed, revision } = (await store.find('n', NO_WAIT)) ?? {};
    expect([sealed, revision]).toEqual([replaced[0] ? 'second' : 'third', 2]);
    await store.end(['n'], NO_WAIT);
    expect(await store.replace('n', 2, 'fourth', NO_WAIT)).toBe(false);
    expect(await store.find('n', NO_WAIT)).toBeUndefined();
  });

  it.each([
    ['a', null, ['a-1', 'a-2', 'a']],
    // And those of the user of which nobody knows the name.
    ['a', '1', ['a-1', 'a']],
    [null, '1', ['a-1', 'b-1']],
    [null, null, []],
    ['c', '1', []],
  ])('ends those that an identity provider names: %s, %s', async (sub, sid, expected) => {
    const store = await storeOf();
    const all = {
      'a-1': ['a', '1'],
      'a-2': ['a', '2'],
      a: ['a', null],
      'b-1': ['b', '1'],
      token: [null, null],
    };
    for (const [name, [ofUser = null, of = null]] of Object.entries(all)) {
      const row = { name, owner: name, isShared: false, sealed: '', sub: ofUser, sid: of };
      await store.open(row, { lifetime: HOUR, instead: [] }, NO_WAIT);
    }
    expect(await store.endMarked({ sub, sid }, NO_WAIT)).toBe(expected.length);
    const found = await Promise.all(Object.keys(all).map((name) => store.find(name, NO_WAIT)));
    expect(Object.keys(all).filter((_, index) => found[index] === undefined)).toEqual(expected);
  });

  it('takes a name once, until its time is over', async () => {
    const { start } = setClock();
    const store = await storeOf();
    const take = (name: string) => store.takeOnce(name, HOUR, NO_WAIT);
    expect((await Promise.all([take('one'), take('one')])).sort()).toEqual([false, true]);
    expect([await take('other'), await take('other')]).toEqual([true, false]);
    vi.setSystemTime(start + HOUR);
    expect([await take('one'), await take('one')]).toEqual([true, false]);
  });
});

describe('the cookie', () => {
  it.for([
    ['https', true],
    ['HTTPS', true],
    ['https, http', true],
    [' https ,https', true],
    ['http, https', false],
  ] as const)('is sent over TLS only behind proxies that say %s: %s', async ([proto, isSecure]) => {
    const login = request('', { 'x-forwarded-proto': proto });
    await sessionsIn(new MemorySessions()).sessions.open(login, proofOf());
    const set = String(login.res.getHeader('set-cookie'));
    expect([set.startsWith('__Host-'), set.includes('secure')]).toEqual([isSecure, isSecure]);
  });

  it('is bound to the host over TLS, and no other is taken there', async () => {
    const { sessions, callerOf } = sessionsIn(new MemorySessions());
    const login = request('', TLS);
    await sessions.open(login, proofOf());
    const cookie = cookieOf(login);
    expect(await callerOf(cookie, TLS)).toEqual(OPERATOR);
    expect(await callerOf(cookie.replace('__Host-', ''), TLS)).toBeUndefined();
    expect(await callerOf(cookie)).toBeUndefined();
  });
});

describe.each(DIALECTS)('Sessions in the ledger on %s', (dialect) => {
  const rowsOf = async (database: Database) =>
    database.read(() => rows(database.queries.selectFrom('sessions').selectAll().compile()), NO_WAIT);

  it('are known to every replica, and end at each', async () => {
    const database = await databaseOf(dialect);
    const one = sessionsIn(new SessionTable(database));
    const other = sessionsIn(new SessionTable(database));
    const cookie = await one.logIn();
    expect(await other.callerOf(cookie)).toEqual(OPERATOR);
    await other.end(cookie);
    expect(await one.callerOf(cookie)).toBeUndefined();
  });

  it('tell who reads the rows nothing to use, and are none where a row was changed or copied', async () => {
    const database = await databaseOf(dialect);
    const { logIn, areOpen } = sessionsIn(new SessionTable(database));
    const mine = await logIn(OPERATOR, 'keystone 0a1b');
    const key = [...owners.keys()].at(-1);
    const theirs = await logIn(tokenCaller('reader', 'r'), 'keystone 7c8d');
    const nameOf = (cookie: string) => digest(cookie.split('=')[1] ?? '');
    const put = (cookie: string, sealed: string) => {
      const query = sql`update sessions set sealed = ${sealed} where name = ${nameOf(cookie)}`;
      return database.transact(() => rows(query.compile(database.queries)), NO_WAIT);
    };
    const [row] = await rowsOf(database);
    const text = Object.values(row ?? {}).join(' ');
    for (const secret of [mine.split('=')[1] ?? '', String(key), '0a1b', 'operator']) {
      expect(text).not.toContain(secret);
    }
    const { sealed = '' } = row ?? {};
    expect(await areOpen([mine, theirs])).toEqual([true, true]);
    // Somebody who may write puts the row of another one under their own cookie.
    await put(theirs, sealed);
    expect(await areOpen([mine, theirs])).toEqual([true, false]);
    const middle = sealed.charAt(40) === 'A' ? 'B' : 'A';
    const cut = [sealed.slice(0, 40) + middle + sealed.slice(41), sealed.slice(0, -4)];
    for (const changed of [...cut, 'A', '', 'no text of ours', '{"csrf":"x"}']) {
      await put(mine, changed);
      expect(await areOpen([mine]), changed).toEqual([false]);
    }
    await put(mine, sealed);
    expect(await areOpen([mine])).toEqual([true]);
  });

  it('have the clock of the database, or of the machine with the file', async () => {
    const { logIn, areOpen } = sessionsIn(new SessionTable(await databaseOf(dialect)));
    const cookie = await logIn();
    // The clock of this replica is behind.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - HOUR });
    expect(await areOpen([cookie])).toEqual([dialect === 'postgresql']);
  });
});

describe('Sessions that cannot be reached', () => {
  const store = vi.fn<() => never>(() => {
    throw new LedgerUnavailableError('connect ECONNREFUSED');
  });
  const gone = { find: store, open: store, replace: store, end: store, endMarked: store, takeOnce: store };
  const name = 'blazar-enforcement-session=';

  it('are neither opened nor ended, and nobody is taken for somebody else', async () => {
    const logger = recordingLogger();
    const { sessions } = sessionsIn(gone, logger);
    const [login, logout, asked] = [1, 2, 3].map(() => request(`${name}${'a'.repeat(43)}`)) as [
      Context,
      Context,
      Context,
    ];
    expect(await sessions.open(login, proofOf())).toBe(NO_SESSION_NOW);
    const shown = { status: 503, expose: true, message: expect.stringContaining('please try again') };
    await expect(sessions.end(logout)).rejects.toMatchObject(shown);
    await expect(sessions.callerOf(asked)).rejects.toMatchObject(shown);
    for (const ctx of [login, logout, asked]) {
      expect(ctx.res.getHeader('set-cookie'), 'the cookie stays').toBeUndefined();
    }
    expect(logger.lines.map(({ level, fields }) => [level, fields.error])).toEqual(
      Array.from({ length: 3 }, () => ['warn', 'connect ECONNREFUSED']),
    );
  });

  it('are not asked for without a cookie of ours', async () => {
    store.mockClear();
    const { sessions, callerOf, end } = sessionsIn(gone);
    for (const cookie of [
      '',
      'other=1',
      name,
      `${name}x`,
      `${name}${'a'.repeat(44)}`,
      `${name}${'a'.repeat(42)}%`,
      `${name}${'\u00e4'.repeat(43)}`,
      `${name}' OR 1=1; --`,
      `${name}${'a'.repeat(43)}; ${name}${'b'.repeat(43)}`,
    ]) {
      expect(await callerOf(cookie), cookie).toBeUndefined();
      expect(await sessions.proofOf(request(cookie)), cookie).toBeUndefined();
    }
    await end(`${name}' OR 1=1`);
    expect(store).not.toHaveBeenCalled();
  });
});

it('invented cookies of one address do not take the places of others in the queue', async () => {
  const { sessions } = sessionsIn(new MemorySessions());
  const { promise: held, resolve: release } = withResolvers();
  const generation = {
    options: { session_lifetime: 3600, deadline: 3600 },
    sessions: { store: async () => ({ find: () => held }) },
  };
  const lookup = (ip: string) => {
    const ctx = request(`blazar-enforcement-session=${'a'.repeat(43)}`);
    ctx.request.ip = ip;
    ctx.state = { requestId: 'req-1', generation };
    return sessions.callerOf(ctx).then(
      () => 'found',
      () => 'refused',
    );
  };
  const ofOne = Array.from({ length: 16 + 1000 }, () => lookup('192.0.2.1'));
  expect(await lookup('192.0.2.1')).toBe('refused');
  const ofOther = lookup('192.0.2.2');
  // Until it is in the queue.
  expect(await Promise.race(ofOne)).toBe('refused');
  release();
  expect(await ofOther).toBe('found');
  expect((await Promise.all(ofOne)).filter((outcome) => outcome === 'refused')).toHaveLength(1);
});
