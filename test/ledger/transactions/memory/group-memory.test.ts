/** What the parts of a group ask the database, and what they know of each other. */

import pg from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { rows, type Work } from '../../../../src/ledger/storage/database.ts';
import { openSqlite, type SqliteStatement } from '../../../../src/ledger/storage/sqlite-driver.ts';
import { record } from '../../../../src/ledger/transactions/lease-transactions.ts';
import type { Transaction } from '../../../../src/ledger/transactions/transaction.ts';
import { DIALECTS, NO_WAIT, newLedgers } from '../../../support/ledgers.ts';
import { fixtureAt, type Operation, perform, requestOf } from '../../grouped-operations.ts';

const newLedger = newLedgers();

/** Those of one project that are asked for at once come to what is resolved. */
async function newProject(dialect: (typeof DIALECTS)[number]) {
  const fixture = fixtureAt(await newLedger(dialect));
  onTestFinished(() => fixture.ledger.close());
  const at = { before: [], undos: [] };
  return (...operations: Operation[]) =>
    Promise.all(
      operations.map((one) =>
        perform(fixture, 'climate', one, at).catch((thrown: Error) => `failed: ${thrown.message}`),
      ),
    );
}

type Create = Operation & { readonly kind: 'create' };

const create = (user: string, lease: Partial<Create> = {}): Create => ({
  kind: 'create',
  user,
  key: undefined,
  id: null,
  start: 1n,
  hours: 1n,
  fate: 'written',
  ...lease,
});
const budget = (hours: '1' | '3' | '25'): Operation => ({ kind: 'budget', user: null, hours });

describe.each(DIALECTS)('what is asked for at once: %s', (dialect) => {
  it.each([{ key: 'k' }, { id: 'A' }])('is recorded once when it is asked for twice: %j', async (lease) => {
    const ask = await newProject(dialect);
    expect(await ask(create('alice', lease), create('alice', lease))).toEqual(['recorded', 'known']);
  });

  it('is judged by the budget that a part before it has set, and by what those before it have taken', async () => {
    const ask = await newProject(dialect);
    const users = ['alice', 'bob', 'carol', 'dave'];
    expect(await ask(budget('25'), ...users.map((user) => create(user)))).toEqual([
      expect.any(BigInt),
      ...users.map(() => 'recorded'),
    ]);
    const more = users.map((user) => create(user));
    expect((await ask(budget('3'), ...more)).slice(1)).toEqual(users.map(() => 'too much'));
    expect((await ask(...more.slice(2), budget('25'), ...more.slice(2))).toSpliced(2, 1)).toEqual([
      'too much',
      'too much',
      'recorded',
      'recorded',
    ]);
  });

  it('takes nothing from what is known when it breaks after it has written', async () => {
    const ask = await newProject(dialect);
    // What his leases touch is known from the first one.
    expect((await ask(budget('3'), create('bob')))[1]).toBe('recorded');
    const broken = create('alice', { fate: 'breaks', hours: 2n });
    expect(await ask(broken, create('bob', { hours: 2n }), broken, create('carol'))).toEqual([
      'failed: broken',
      'recorded',
      'failed: broken',
      'too much',
    ]);
  });

  it('is refused alone when it holds what cannot be stored', async () => {
    const ask = await newProject(dialect);
    const hostile = create('alice', { fate: 'holds what cannot be stored' });
    expect(await ask(create('bob'), hostile, create('carol'), hostile, create('dave'))).toEqual([
      'recorded',
      expect.stringContaining('failed: '),
      'recorded',
      expect.stringContaining('failed: '),
      'recorded',
    ]);
  });
});

it('is refused alone when its key cannot be asked for: postgresql', async () => {
  const ask = await newProject('postgresql');
  const unreadable = create('alice', { key: 'a\0b' });
  expect(await ask(create('bob'), unreadable, create('dave'))).toEqual([
    'recorded',
    expect.stringContaining('0x00'),
    'recorded',
  ]);
});

it('asks the database once for all of them, and writes without waiting: postgresql', async () => {
  const ask = await newProject('postgresql');
  const leases = Array.from({ length: 10 }, (_, index) => create(`user ${index}`));
  await ask(budget('25'));
  // What their leases touch is known from the first ones.
  expect(await ask(...leases)).toEqual(leases.map(() => 'recorded'));
  const said = vi.spyOn(pg.Client.prototype, 'query');
  onTestFinished(() => said.mockRestore());
  const answers = await ask(...leases, ...leases);
  expect(answers.slice(0, 10)).toEqual(leases.map(() => 'recorded'));
  expect(answers.slice(10)).toEqual(leases.map(() => 'too many'));
  const statements = said.mock.calls.map(([asked]) => String(Object(asked).text).split(' ', 3).join(' '));
  const count = (word: string) => statements.filter((text) => text.startsWith(word)).length;
  // The lock; then the leases that are over, the budgets, the balances, and ids.
  expect(count('insert into "projects"')).toBe(1);
  expect(count('select')).toBe(4);
  expect(statements.slice(6, 11)).toEqual([
    'SAVEPOINT part',
    'insert into "leases"',
    'insert into "accounts"',
    'insert into "entries"',
    'RELEASE SAVEPOINT part',
  ]);
  expect(statements).toHaveLength(6 + 10 * 5 + 1);
  expect(statements.at(-1)).toBe('COMMIT');
});

/** All that is said to SQLite from now on: the first words of each statement. */
function saidToSqlite(): string[] {
  const said: string[] = [];
  const any = openSqlite(':memory:');
  const statements: SqliteStatement = Object.getPrototypeOf(any.prepare('SELECT 1'));
  any.close();
  const { run, all } = statements;
  const note = ({ source }: SqliteStatement) => said.push(source.split(' ', 3).join(' '));
  vi.spyOn(statements, 'run').mockImplementation(function (this: SqliteStatement, values) {
    note(this);
    return run.call(this, values);
  });
  vi.spyOn(statements, 'all').mockImplementation(function (this: SqliteStatement, values) {
    note(this);
    return all.call(this, values);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  return said;
}

it.each(DIALECTS)('finds what it has written, and those before it, whatever it asks: %s', async (dialect) => {
  const fixture = fixtureAt(await newLedger(dialect));
  onTestFinished(() => fixture.ledger.close());
  const { ledger, time } = fixture;
  const { statements } = ledger;
  const author = { operation: 'create', who: 'somebody', requestId: null, reason: null } as const;
  const openLeases = (before: (transaction: Transaction) => Work<unknown>) =>
    ledger.transact(
      'commit',
      function* (transaction) {
        yield* before(transaction);
        const [row] = yield* rows(statements.openLeases({ project_id: 'climate', now: time.now }));
        return Number(row?.count);
      },
      NO_WAIT,
      { project: 'climate' },
    );
  const recording = (user: string) => (transaction: Transaction) =>
    record(statements, requestOf('climate', time.now, create(user)), transaction, author);
  expect(
    await Promise.all([
      openLeases((transaction) => transaction.lock('climate')),
      ...['alice', 'bob'].map((user) => openLeases(recording(user))),
      ledger.transact('commit', recording('carol'), NO_WAIT, { project: 'climate' }),
      openLeases((transaction) => transaction.lock('climate')),
    ]),
  ).toMatchObject([0, 1, 2, { refusal: undefined }, 3]);
});

it('asks for what the parts before it have not read: sqlite', async () => {
  const ask = await newProject('sqlite');
  const users = ['alice', 'bob', 'carol'];
  const leases = users.map((user) => create(user));
  await ask(budget('25'));
  // What their leases touch is known from the first ones.
  await ask(...leases);
  const said = saidToSqlite();
  const refused = users.map((user) => create(user));
  expect(await ask(...leases, ...refused)).toEqual([
    ...users.map(() => 'recorded'),
    ...users.map(() => 'too many'),
  ]);
  const writes = ['leases', 'accounts', 'entries'].map((name) => `insert into "${name}"`);
  const reads = ['select * from', 'select "name", "balance"'];
  expect(said.filter((text) => text !== 'SELECT 1 FROM')).toEqual([
    'BEGIN IMMEDIATE',
    ...['SAVEPOINT part', 'insert into "projects"', 'select "id", "starts_at",', ...reads],
    ...[...writes, 'RELEASE SAVEPOINT part'],
    ...['bob', 'carol'].flatMap(() => [...reads, 'SAVEPOINT part', ...writes, 'RELEASE SAVEPOINT part']),
    'COMMIT',
  ]);
});
