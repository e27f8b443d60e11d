/** Wrong tokens and passwords: how many are tried in a minute, by this process and by all replicas together. */
import type { Context } from 'koa';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { rows } from '../../../src/ledger/storage/database.ts';
import { SessionTable } from '../../../src/server/users/sessions/session-table.ts';
import { LoginAttempts, WrongTokens } from '../../../src/server/users/wrong-tokens.ts';
import { DIALECTS, NO_WAIT } from '../../support/ledgers.ts';
import { withResolvers } from '../../support/with-resolvers.ts';
import { databaseOf } from './databases.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 11, 1, 9) });
});
const later = (milliseconds: number) => vi.setSystemTime(Date.now() + milliseconds);

describe('wrong tokens', () => {
  const wrongly = (limit: WrongTokens, address: string, times = 10) => {
    for (let count = 0; count < times; count += 1) {
      limit.count(address);
    }
  };

  it('are counted for a network of IPv6 together, and apart for other addresses', () => {
    const limit = new WrongTokens();
    wrongly(limit, '2001:db8:0:1::7');
    for (const same of ['2001:db8:0:1::7', '2001:db8:0:1:ffff:1:2:3', '2001:db8:0:1::']) {
      expect(limit.count(same), same).toBe(60);
    }
    for (const other of ['2001:db8:0:2::7', '2001:db8::7', '::1', '192.0.2.1', '']) {
      expect(limit.count(other), other).toBe(0);
    }
    wrongly(limit, '::ffff:192.0.2.2');
    expect([limit.count('192.0.2.2'), limit.count('192.0.2.3')]).toEqual([60, 0]);
  });

  it('are counted anew after a minute, and when the clock was set back', () => {
    const limit = new WrongTokens();
    wrongly(limit, 'a', 9);
    later(59_999);
    expect([limit.count('a'), limit.count('a')]).toEqual([0, 1]);
    later(1);
    expect(limit.count('a')).toBe(0);
    wrongly(limit, 'a');
    expect(limit.count('a')).toBe(60);
    later(-60_000);
    expect(limit.count('a')).toBe(0);
  });

  it('are remembered of ten thousand addresses', () => {
    const limit = new WrongTokens();
    wrongly(limit, 'first');
    wrongly(limit, 'second');
    for (let index = 0; index < 9_999; index += 1) {
      limit.count(`10.0.${index >> 8}.${index & 255}`);
    }
    expect([limit.count('second'), limit.count('first')]).toEqual([60, 0]);
  });
});

async function fixture(store: (typeof DIALECTS)[number] | 'nothing shared') {
  if (store === 'nothing shared') {
    const alone = new LoginAttempts({ shared: async () => undefined });
    return { one: alone, other: alone, counted: async () => undefined };
  }
  const database = await databaseOf(store);
  const table = new SessionTable(database, { now: () => Date.now() });
  const replica = () => new LoginAttempts({ shared: async (_, work) => work(table, NO_WAIT) });
  const counted = async () => {
    const query = database.queries.selectFrom('login_counts').select(['kind', 'count']).orderBy('kind');
    return (await database.read(() => rows(query.compile()), NO_WAIT)).map(
      ({ kind, count }) => `${kind} ${count}`,
    );
  };
  return { one: replica(), other: replica(), counted };
}

/** `refused` = it was not even tried. */
async function guess(
  attempts: LoginAttempts,
  account: string,
  ip: string,
  outcome: object = { isWrong: true },
) {
  const ctx = { ip, state: { generation: { options: { deadline: 30 } } } } as Context;
  const answer = await attempts.byPassword(ctx, account, async () => outcome);
  return 'seconds' in answer ? `refused for ${answer.seconds} s` : 'tried';
}
const REFUSED = 'refused for 60 s';

/** By turns at both, each from another address. */
async function guesses(replicas: readonly LoginAttempts[], account: string, count: number) {
  const answers: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const replica = replicas[index % replicas.length] as LoginAttempts;
    answers.push(await guess(replica, account, `198.51.100.${index}`));
  }
  return new Set(answers);
}

describe.each([...DIALECTS, 'nothing shared'] as const)('wrong passwords, counted on %s', (store) => {
  it('are ten a minute for an account, wherever they are tried, and however it is written', async () => {
    const { one, other } = await fixture(store);
    expect(await guesses([one, other], 'alice', 10)).toEqual(new Set(['tried']));
    for (const [index, same] of ['alice', 'ALICE', 'alice  ', 'alicé', 'ａlice'].entries()) {
      expect(await guess(index % 2 === 0 ? one : other, same, `192.0.2.${index}`), same).toBe(REFUSED);
    }
    expect(await guess(other, 'bob', '192.0.2.1')).toBe('tried');
    later(60_000);
    expect(await guess(other, 'alice', '192.0.2.1')).toBe('tried');
  });

  it('are thirty a minute from an address, whatever the accounts', async () => {
    const { one } = await fixture(store);
    for (let index = 0; index < 30; index += 1) {
      expect(await guess(one, `user-${index}`, '192.0.2.1')).toBe('tried');
    }
    expect(await guess(one, 'alice', '192.0.2.1')).toBe(REFUSED);
    expect(await guess(one, 'alice', '192.0.2.2')).toBe('tried');
  });

  it('are counted before they are tried: no more go on at once', async () => {
    const { one, other, counted } = await fixture(store);
    const all = await Promise.all(
      Array.from({ length: 24 }, (_, index) =>
        guess(index % 2 === 0 ? one : other, 'alice', `198.51.100.${index}`),
      ),
    );
    expect(all.filter((outcome) => outcome === 'tried')).toHaveLength(10);
    expect((await counted()) ?? ['account 10']).toContain('account 10');
  });

  it('keep nobody out where they have logged in before, whoever else is named or guesses there', async () => {
    const { one, other } = await fixture(store);
    expect(await guess(one, 'alice', '192.0.2.1', { proof: {} })).toBe('tried');
    await guesses([other], 'alice', 10);
    for (let index = 0; index < 30; index += 1) {
      await guess(one, `user-${index}`, '192.0.2.1');
    }
    expect(await guess(other, 'alice', '192.0.2.9')).toBe(REFUSED);
    expect(await guess(one, 'bob', '192.0.2.1')).toBe(REFUSED);
    expect(await guess(one, 'alice', '192.0.2.1')).toBe('tried');
  });

  it('are limited there, too, and these keep nobody out elsewhere', async () => {
    const { one } = await fixture(store);
    await guess(one, 'alice', '192.0.2.1', { proof: {} });
    for (let count = 0; count < 10; count += 1) {
      expect(await guess(one, 'alice', '192.0.2.1')).toBe('tried');
    }
    expect(await guess(one, 'alice', '192.0.2.1')).toBe(REFUSED);
    expect(await guess(one, 'alice', '192.0.2.2')).toBe('tried');
  });

  it('take back what was not wrong, and are forgotten after a minute, or when the clock was set back', async () => {
    const { one, other, counted } = await fixture(store);
    for (let count = 0; count < 40; count += 1) {
      expect(await guess(count % 2 === 0 ? one : other, 'alice', '192.0.2.1', {})).toBe('tried');
    }
    expect((await counted()) ?? ['account 0', 'address 0']).toEqual(['account 0', 'address 0']);
    await guess(one, 'bob', '192.0.2.2');
    later(-1);
    await guess(one, 'carol', '192.0.2.3');
    expect((await counted()) ?? ['account 1', 'address 1']).toEqual(['account 1', 'address 1']);
  });
});

it('logins of one address do not take the places of others in the queue', async () => {
  const attempts = new LoginAttempts({ shared: async () => undefined });
  const inLine = (ip: string, work: () => Promise<unknown>) => {
    const ctx = { ip, state: { generation: { options: { deadline: 3600 } } } } as Context;
    return attempts.inLine(ctx, work).then(
      () => 'done',
      () => 'refused',
    );
  };
  const { promise: held, resolve: release } = withResolvers();
  const ofOne = Array.from({ length: 8 + 64 }, () => inLine('192.0.2.1', () => held));
  expect(await inLine('192.0.2.1', () => held)).toBe('refused');
  const ofOther = inLine('192.0.2.2', () => held);
  release();
  expect(await ofOther).toBe('done');
  const all = await Promise.all(ofOne);
  expect(all.filter((outcome) => outcome === 'refused')).toHaveLength(1);
});
