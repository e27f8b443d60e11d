import type { Context } from 'koa';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Database, rows } from '../../../src/ledger/storage/database.ts';
import { PostgresDatabase } from '../../../src/ledger/storage/postgres/postgres.ts';
import { SqliteDatabase } from '../../../src/ledger/storage/sqlite.ts';
import { SessionTable } from '../../../src/server/users/sessions/session-table.ts';
import { LoginAttempts } from '../../../src/server/users/wrong-tokens.ts';
import { DIALECTS, NO_WAIT, newLedgers } from '../../support/ledgers.ts';

const newLedger = newLedgers();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 11, 1, 9) });
});
afterEach(() => {
  vi.useRealTimers();
});

const from = (ip: string) => ({ ip, state: { generation: { options: { deadline: 30 } } } }) as Context;

async function ground(dialect: (typeof DIALECTS)[number]) {
  const url = await newLedger(dialect);
  const database: Database =
    dialect === 'sqlite'
      ? new SqliteDatabase(url.slice('sqlite://'.length))
      : new PostgresDatabase(url, { poolSize: 2, timeout: 60 });
  onTestFinished(() => database.close().catch(() => {}));
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
  const answer = await attempts.byPassword(from(ip), account, async () => outcome);
  return 'seconds' in answer ? `refused for ${answer.seconds} s` : 'tried';
}

describe.each(DIALECTS)('wrong passwords, counted for all replicas on %s', (dialect) => {
  it('are ten a minute for an account, wherever they are tried', async () => {
    const { one, other } = await ground(dialect);
    for (let index = 0; index < 10; index += 1) {
      expect(await guess(index % 2 === 0 ? one : other, 'alice', `198.51.100.${index}`)).toBe('tried');
    }
    expect(await guess(one, 'ALICE', '192.0.2.1')).toBe('refused for 60 s');
    expect(await guess(other, 'alice', '192.0.2.2')).toBe('refused for 60 s');
    expect(await guess(other, 'bob', '192.0.2.1')).toBe('tried');
    vi.setSystemTime(Date.now() + 60_000);
    expect(await guess(other, 'alice', '192.0.2.1')).toBe('tried');
  });

  it('are counted before they are tried: no more go on at once', async () => {
    const { one, other, counted } = await ground(dialect);
    const all = await Promise.all(
      Array.from({ length: 24 }, (_, index) =>
        guess(index % 2 === 0 ? one : other, 'alice', `198.51.100.${index}`),
      ),
    );
    expect(all.filter((outcome) => outcome === 'tried')).toHaveLength(10);
    expect(await counted()).toContain('account 10');
  });

  it('keep nobody out where they have logged in before, by whichever replica', async () => {
    const { one, other } = await ground(dialect);
    expect(await guess(one, 'alice', '192.0.2.1', { proof: {} })).toBe('tried');
    for (let index = 0; index < 10; index += 1) {
      await guess(other, 'alice', `198.51.100.${index}`);
    }
    expect(await guess(other, 'alice', '192.0.2.9')).toBe('refused for 60 s');
    expect(await guess(other, 'alice', '192.0.2.1')).toBe('tried');
  });

  it('take back what was not wrong, and are forgotten after a minute, or when the clock was set back', async () => {
    const { one, other, counted } = await ground(dialect);
    for (let count = 0; count < 12; count += 1) {
      expect(await guess(count % 2 === 0 ? one : other, 'alice', '192.0.2.1', {})).toBe('tried');
    }
    expect(await counted()).toEqual(['account 0', 'address 0']);
    await guess(one, 'bob', '192.0.2.2');
    vi.setSystemTime(Date.now() - 1);
    await guess(one, 'carol', '192.0.2.3');
    expect(await counted()).toEqual(['account 1', 'address 1']);
  });
});

it('wrong passwords are counted by the process alone where nothing is shared, or it cannot be reached', async () => {
  const alone = new LoginAttempts({ shared: async () => undefined });
  for (let index = 0; index < 10; index += 1) {
    expect(await guess(alone, 'alice', `198.51.100.${index}`)).toBe('tried');
  }
  expect(await guess(alone, 'alice', '192.0.2.1')).toBe('refused for 60 s');
});
