import { setTimeout as pause } from 'node:timers/promises';
import Koa, { type Context } from 'koa';
import { sql } from 'kysely';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { LedgerUnavailableError } from '../../../../src/base/errors.ts';
import { type Database, rows } from '../../../../src/ledger/storage/database.ts';
import { PostgresDatabase } from '../../../../src/ledger/storage/postgres/postgres.ts';
import { SqliteDatabase } from '../../../../src/ledger/storage/sqlite.ts';
import { type Caller, tokenCaller } from '../../../../src/server/users/caller.ts';
import { digest } from '../../../../src/server/users/sessions/sealed.ts';
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
  type Proof,
  Sessions,
  TOO_MANY_SESSIONS,
} from '../../../../src/server/users/sessions/sessions.ts';
import type { StoredProof } from '../../../../src/server/users/sessions/stored-session.ts';
import { NO_WAIT, newLedgers } from '../../../support/ledgers.ts';
import { recordingLogger } from '../../../support/logger.ts';

const OPERATOR = tokenCaller('operator', 'operator token');
const HOUR = 3_600_000;
/** In milliseconds: then it is asked again whether the session is there. */
const LONG_ENOUGH = 60;
const newLedger = newLedgers();

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

/** By the key that is kept. */
const proofs = new Map<string, Proof>();

function proofOf(caller: Caller | undefined, identity = 'token', isShared = false): Proof {
  const key = crypto.randomUUID();
  const proof: Proof = {
    ...{ identity, isShared, kept: { kind: 'token', identity, key } },
    owner: async () => caller,
  };
  proofs.set(key, proof);
  return proof;
}

function ownedBy(owner: Proof['owner']): Proof {
  const proof = { ...proofOf(OPERATOR), owner };
  proofs.set(proof.kept.kind === 'token' ? proof.kept.key : '', proof);
  return proof;
}

function restore(kept: StoredProof): Proof {
  const proof = kept.kind === 'token' ? proofs.get(kept.key) : undefined;
  if (proof === undefined) {
    throw new Error('expected a proof of this test');
  }
  return proof;
}

async function databaseOf(dialect: 'sqlite' | 'postgresql'): Promise<Database> {
  const url = await newLedger(dialect);
  const database =
    dialect === 'sqlite'
      ? new SqliteDatabase(url.slice('sqlite://'.length))
      : new PostgresDatabase(url, { poolSize: 2, timeout: 60 });
  onTestFinished(() => database.close().catch(() => {}));
  return database;
}

/** The clock is that of the process, which tests set. */
const STORES: Record<string, (bounds?: SessionBounds) => Promise<SessionStore>> = {
  memory: async (bounds) => new MemorySessions(bounds),
  sqlite: async (bounds = BOUNDS) => new SessionTable(await databaseOf('sqlite'), { bounds }),
  postgresql: async (bounds = BOUNDS) =>
    new SessionTable(await databaseOf('postgresql'), { bounds, now: () => Date.now() }),
};

function sessionsIn(memory: SessionStore, logger = recordingLogger()): Sessions {
  return new Sessions({ restore, logger, memory });
}

afterEach(() => {
  vi.useRealTimers();
});

it('there are ten thousand, twenty of a user, and two hundred of a token', () => {
  expect(BOUNDS).toEqual({ all: 10_000, ofUser: 20, ofToken: 200 });
});

describe.each(Object.entries(STORES))('Sessions in %s', (_, storeOf) => {
  const newSessions = async (bounds?: SessionBounds) => sessionsIn(await storeOf(bounds));

  it('knows the caller of a cookie, until the proof is gone, for good', async () => {
    const sessions = await newSessions();
    const login = request();
    let caller: Caller | undefined = OPERATOR;
    await sessions.open(
      login,
      ownedBy(async () => caller),
    );
    expect(await sessions.callerOf(request(cookieOf(login)))).toEqual(OPERATOR);
    caller = undefined;
    expect(await sessions.callerOf(request(cookieOf(login)))).toBeUndefined();
    caller = OPERATOR;
    expect(await sessions.callerOf(request(cookieOf(login)))).toBeUndefined();
    expect(sessions.csrfOf(request(cookieOf(login)))).toBe('');
  });

  it('knows nobody by two cookies, of which one may be that of a neighbour in the domain, and ends both', async () => {
    const sessions = await newSessions();
    const [mine, theirs] = [request(), request()];
    await sessions.open(mine, proofOf(OPERATOR));
    await sessions.open(theirs, proofOf(tokenCaller('reader', 'a neighbour')));
    const both = `${cookieOf(theirs)}; ${cookieOf(mine)}`;
    for (const cookie of [
      both,
      `${cookieOf(mine)};${cookieOf(theirs)}`,
      `${cookieOf(mine)}; ${cookieOf(mine)}`,
    ]) {
      expect(await sessions.callerOf(request(cookie))).toBeUndefined();
      expect(sessions.csrfOf(request(cookie))).toBe('');
    }
    expect(await sessions.callerOf(request(`other=1; ${cookieOf(mine)}; x`))).toEqual(OPERATOR);
    await sessions.end(request(both));
    expect(await sessions.callerOf(request(cookieOf(mine)))).toBeUndefined();
    expect(await sessions.callerOf(request(cookieOf(theirs)))).toBeUndefined();
  });

  it.for(['https', 'HTTPS', 'https, http', ' https ,https'])(
    'sends its cookie over TLS only behind proxies that say %s',
    async (proto) => {
      const login = request('', { 'x-forwarded-proto': proto });
      await (await newSessions()).open(login, proofOf(OPERATOR));
      expect(String(login.res.getHeader('set-cookie'))).toMatch(/__Host-[^;]*;.*secure/);
      const plain = request('', { 'x-forwarded-proto': 'http, https' });
      await (await newSessions()).open(plain, proofOf(OPERATOR));
      expect(String(plain.res.getHeader('set-cookie'))).not.toContain('secure');
    },
  );

  it('keeps a session whose proof cannot be asked about now', async () => {
    const sessions = await newSessions();
    const login = request();
    const owner = vi.fn<Proof['owner']>().mockRejectedValueOnce(new Error('503')).mockResolvedValue(OPERATOR);
    await sessions.open(login, ownedBy(owner));
    await expect(sessions.callerOf(request(cookieOf(login)))).rejects.toThrow('503');
    expect(await sessions.callerOf(request(cookieOf(login)))).toEqual(OPERATOR);
  });

  it('lets nobody through who has logged out while the proof was asked', async () => {
    const sessions = await newSessions();
    const login = request();
    let answer: ((caller: Caller) => void) | undefined;
    const owner = vi.fn<Proof['owner']>(
      () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    );
    await sessions.open(login, ownedBy(owner));
    const asked = sessions.callerOf(request(cookieOf(login)));
    await vi.waitFor(() => expect(owner).toHaveBeenCalled());
    await sessions.end(request(cookieOf(login)));
    await pause(LONG_ENOUGH);
    answer?.(OPERATOR);
    expect(await asked).toBeUndefined();
  });

  it('has a token for forms that is another for every session, and the same during it', async () => {
    const csrfOf = async (ctx: Context) => {
      await sessions.callerOf(ctx);
      return sessions.csrfOf(ctx);
    };
    const sessions = await newSessions();
    const [one, other] = [request(), request()];
    await sessions.open(one, proofOf(OPERATOR));
    await sessions.open(other, proofOf(OPERATOR));
    const csrf = await csrfOf(request(cookieOf(one)));
    expect(csrf).toMatch(/^[\w-]{43}$/);
    expect(await csrfOf(request(cookieOf(one)))).toBe(csrf);
    expect(await csrfOf(request(cookieOf(other)))).not.toBe(csrf);
    expect(cookieOf(one)).not.toContain(csrf);
    expect(isCsrf(csrf, csrf)).toBe(true);
    for (const sent of [null, '', 'x', `${csrf}x`, csrf.toLowerCase()]) {
      expect(isCsrf(csrf, sent), String(sent)).toBe(false);
    }
    expect(isCsrf('', ''), 'without a session').toBe(false);
  });

  it('binds the cookie to the host over TLS, and takes no other there', async () => {
    const sessions = await newSessions();
    const tls = { 'x-forwarded-proto': 'https' };
    const login = request('', tls);
    await sessions.open(login, proofOf(OPERATOR));
    const cookie = cookieOf(login);
    expect(cookie).toMatch(/^__Host-blazar-enforcement-session=/);
    expect(await sessions.callerOf(request(cookie, tls))).toEqual(OPERATOR);
    expect(await sessions.callerOf(request(cookie.replace('__Host-', ''), tls))).toBeUndefined();
    expect(await sessions.callerOf(request(cookie))).toBeUndefined();
  });

  it('keeps a few of one user: whoever logs in again and again ends no session of others', async () => {
    const sessions = await newSessions({ ...BOUNDS, ofUser: 5 });
    const alice = request();
    await sessions.open(alice, proofOf(OPERATOR, 'keystone alice'));
    const mallory = Array.from({ length: 12 }, () => request());
    for (const one of mallory) {
      await sessions.open(one, proofOf(OPERATOR, 'keystone mallory'));
    }
    expect(await sessions.callerOf(request(cookieOf(alice)))).toEqual(OPERATOR);
    const open = await Promise.all(mallory.map((one) => sessions.callerOf(request(cookieOf(one)))));
    expect(open.map((caller) => caller !== undefined)).toEqual(mallory.map((_, index) => index >= 7));
  });

  it('keeps a few of one shared token: the newest give way to each other', async () => {
    const sessions = await newSessions({ ...BOUNDS, ofToken: 8 });
    const guests = Array.from({ length: 12 }, () => request());
    for (const guest of guests) {
      expect(await sessions.open(guest, proofOf(OPERATOR, 'token reader', true))).toBeUndefined();
    }
    const open = await Promise.all(guests.map((one) => sessions.callerOf(request(cookieOf(one)))));
    expect(open.map((caller) => caller !== undefined)).toEqual(
      guests.map((_, index) => index < 7 || index === 11),
    );
  });

  it('of those that there may be, whoever has most gives way, and nobody loses the only one', async () => {
    const sessions = await newSessions({ ...BOUNDS, all: 20, ofUser: 5 });
    const open = async (identity: string) => {
      const login = request();
      const problem = await sessions.open(login, proofOf(OPERATOR, identity));
      return problem === undefined ? cookieOf(login) : problem;
    };
    const opened = async (count: number, name: (index: number) => string) => {
      const cookies: string[] = [];
      for (let index = 0; index < count; index += 1) {
        cookies.push(await open(name(index)));
      }
      return cookies;
    };
    const mallory = await opened(5, () => 'mallory');
    const single = await opened(15, (index) => `user ${index}`);
    const others = await opened(4, (index) => `other ${index}`);
    expect(others).not.toContain(TOO_MANY_SESSIONS);
    expect(await open('one too many'), 'everybody has one').toBe(TOO_MANY_SESSIONS);
    const isOpen = async (cookie = '') => (await sessions.callerOf(request(cookie))) !== undefined;
    expect(await Promise.all(mallory.map(isOpen))).toEqual(mallory.map((_, index) => index === 4));
    expect(await Promise.all([...single, ...others].map(isOpen))).not.toContain(false);
    expect(await isOpen(await open('user 0')), 'in place of their own').toBe(true);
  });

  it('makes room for others when sessions have expired', async () => {
    const start = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: start });
    const sessions = await newSessions({ ...BOUNDS, all: 10 });
    for (let index = 0; index < 10; index += 1) {
      await sessions.open(request(), proofOf(OPERATOR, `user ${index}`));
    }
    expect(await sessions.open(request(), proofOf(OPERATOR, 'late'))).toBe(TOO_MANY_SESSIONS);
    vi.setSystemTime(start + 3_600_000);
    expect(await sessions.open(request(), proofOf(OPERATOR, 'late'))).toBeUndefined();
  });

  it('ends a session whose clock was set back', async () => {
    const start = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: start });
    const sessions = await newSessions();
    const login = request();
    await sessions.open(login, proofOf(OPERATOR));
    vi.setSystemTime(start + HOUR - 1);
    expect(await sessions.callerOf(request(cookieOf(login)))).toEqual(OPERATOR);
    vi.setSystemTime(start - 1);
    expect(await sessions.callerOf(request(cookieOf(login)))).toBeUndefined();
    vi.setSystemTime(start);
    expect(await sessions.callerOf(request(cookieOf(login))), 'for good').toBeUndefined();
  });

  it('keeps no more than twenty of a user who logs in many times at once', async () => {
    const sessions = await newSessions();
    const logins = Array.from({ length: 30 }, () => request());
    await Promise.all(logins.map((login) => sessions.open(login, proofOf(OPERATOR, 'keystone mallory'))));
    const open = await Promise.all(logins.map((one) => sessions.callerOf(request(cookieOf(one)))));
    expect(open.filter((caller) => caller !== undefined)).toHaveLength(20);
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

  it('ends those that an identity provider names', async () => {
    const store = await storeOf();
    const open = async (name: string, sub: string | null, sid: string | null) =>
      store.open(
        { name, owner: name, isShared: false, sealed: '', sub, sid },
        { lifetime: HOUR, instead: [] },
        NO_WAIT,
      );
    const all = ['a-1', 'a-2', 'a', 'b-1', 'token'];
    const ended = async (sub: string | null, sid: string | null) => {
      await store.end(all, NO_WAIT);
      await open('a-1', 'a', '1');
      await open('a-2', 'a', '2');
      await open('a', 'a', null);
      await open('b-1', 'b', '1');
      await open('token', null, null);
      const count = await store.endMarked({ sub, sid }, NO_WAIT);
      const gone = [];
      for (const name of all) {
        gone.push(...((await store.find(name, NO_WAIT)) === undefined ? [name] : []));
      }
      expect(count).toBe(gone.length);
      return gone;
    };
    expect(await ended('a', null)).toEqual(['a-1', 'a-2', 'a']);
    expect(await ended('a', '1'), 'and those of the user of which nobody knows the name').toEqual([
      'a-1',
      'a',
    ]);
    expect(await ended(null, '1')).toEqual(['a-1', 'b-1']);
    expect(await ended(null, null)).toEqual([]);
    expect(await ended('c', '1')).toEqual([]);
  });

  it('takes a name once, until its time is over', async () => {
    const start = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: start });
    const store = await storeOf();
    const take = (name: string) => store.takeOnce(name, HOUR, NO_WAIT);
    const both = await Promise.all([take('one'), take('one')]);
    expect(both.sort()).toEqual([false, true]);
    expect([await take('other'), await take('other')]).toEqual([true, false]);
    vi.setSystemTime(start + HOUR);
    expect([await take('one'), await take('one')]).toEqual([true, false]);
  });
});

describe.each(['sqlite', 'postgresql'] as const)('Sessions in the ledger on %s', (dialect) => {
  const rowsOf = async (database: Database) =>
    database.read(() => rows(database.queries.selectFrom('sessions').selectAll().compile()), NO_WAIT);
  const change = (database: Database, query: ReturnType<typeof sql>) =>
    database.transact(() => rows(query.compile(database.queries)), NO_WAIT);

  it('are known to every replica, and end at each', async () => {
    const database = await databaseOf(dialect);
    const [one, other] = [sessionsIn(new SessionTable(database)), sessionsIn(new SessionTable(database))];
    const login = request();
    await one.open(login, proofOf(OPERATOR));
    expect(await other.callerOf(request(cookieOf(login)))).toEqual(OPERATOR);
    await other.end(request(cookieOf(login)));
    expect(await one.callerOf(request(cookieOf(login)))).toBeUndefined();
  });

  it('tell who reads the rows nothing to use, and are none where a row was changed or copied', async () => {
    const database = await databaseOf(dialect);
    const sessions = sessionsIn(new SessionTable(database));
    const [mine, theirs] = [request(), request()];
    await sessions.open(mine, proofOf(OPERATOR, 'keystone 0a1b'));
    await sessions.open(theirs, proofOf(tokenCaller('reader', 'r'), 'keystone 7c8d'));
    const [, id = ''] = cookieOf(mine).split('=');
    const [, other = ''] = cookieOf(theirs).split('=');
    const [row] = await rowsOf(database);
    const text = Object.values(row ?? {}).join(' ');
    const key = [...proofs.keys()].at(-2);
    for (const secret of [id, String(key), '0a1b', 'operator']) {
      expect(text).not.toContain(secret);
    }
    const { sealed = '' } = row ?? {};
    const isOpen = async (ctx: Context) => (await sessions.callerOf(request(cookieOf(ctx)))) !== undefined;
    expect([await isOpen(mine), await isOpen(theirs)]).toEqual([true, true]);
    // Somebody who may write puts the row of another one under their own cookie.
    await change(database, sql`update sessions set sealed = ${sealed} where name = ${digest(other)}`);
    expect([await isOpen(mine), await isOpen(theirs)]).toEqual([true, false]);
    const middle = sealed.charAt(40) === 'A' ? 'B' : 'A';
    for (const changed of [
      sealed.slice(0, 40) + middle + sealed.slice(41),
      sealed.slice(0, -4),
      'A',
      '',
      'no text of ours',
      '{"csrf":"x"}',
    ]) {
      await change(database, sql`update sessions set sealed = ${changed} where name = ${digest(id)}`);
      expect(await isOpen(mine), changed).toBe(false);
    }
    await change(database, sql`update sessions set sealed = ${sealed} where name = ${digest(id)}`);
    expect(await isOpen(mine)).toBe(true);
  });

  it('have the clock of the database, or of the machine with the file', async () => {
    const database = await databaseOf(dialect);
    const sessions = sessionsIn(new SessionTable(database));
    const login = request();
    await sessions.open(login, proofOf(OPERATOR));
    // The clock of this replica is behind.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - HOUR });
    expect((await sessions.callerOf(request(cookieOf(login)))) !== undefined).toBe(dialect === 'postgresql');
  });
});

describe('Sessions that cannot be reached', () => {
  const away = () => {
    throw new LedgerUnavailableError('connect ECONNREFUSED');
  };
  const store = vi.fn<() => never>(away);
  const gone = { find: store, open: store, replace: store, end: store, endMarked: store, takeOnce: store };

  it('are neither opened nor ended, and nobody is taken for somebody else', async () => {
    const logger = recordingLogger();
    const sessions = sessionsIn(gone, logger);
    const cookie = `blazar-enforcement-session=${'a'.repeat(43)}`;
    const login = request(cookie);
    expect(await sessions.open(login, proofOf(OPERATOR))).toBe(NO_SESSION_NOW);
    const logout = request(cookie);
    const shown = { status: 503, expose: true, message: expect.stringContaining('please try again') };
    await expect(sessions.end(logout)).rejects.toMatchObject(shown);
    const asked = request(cookie);
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
    const sessions = sessionsIn(gone);
    const name = 'blazar-enforcement-session=';
    for (const cookie of [
      '',
      'other=1',
      name,
      `${name}x`,
      `${name}${'a'.repeat(44)}`,
      `${name}${'a'.repeat(42)}%`,
      `${name}${'\u00e4'.repeat(43)}`,
      `${name}${'a'.repeat(43)}; ${name}${'b'.repeat(43)}`,
      `${name}' OR 1=1; --`,
    ]) {
      expect(await sessions.callerOf(request(cookie)), cookie).toBeUndefined();
      expect(await sessions.proofOf(request(cookie)), cookie).toBeUndefined();
    }
    await sessions.end(request(`${name}' OR 1=1`));
    expect(store).not.toHaveBeenCalled();
  });
});
