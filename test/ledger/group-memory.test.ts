/** What the parts of a group in PostgreSQL ask the database, and what they know of each other. */
import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { newLedgers } from '../support/ledgers.ts';
import { groundAt, type Operation, perform } from './grouped-operations.ts';

const newLedger = newLedgers();

/** Those of one project that are asked for at once come to what is resolved. */
async function newProject() {
  const ground = groundAt(await newLedger('postgresql'));
  onTestFinished(() => ground.ledger.close());
  const at = { before: [], undos: [] };
  return (...operations: Operation[]) =>
    Promise.all(
      operations.map((one) =>
        perform(ground, 'climate', one, at).catch((thrown: Error) => `failed: ${thrown.message}`),
      ),
    );
}

type Create = Operation & { readonly kind: 'create' };

const create = (user: string, lease: Partial<Create> = {}): Create => ({
  ...{ kind: 'create', user, key: undefined, id: null, start: 1n, hours: 1n, fate: 'written' },
  ...lease,
});
const budget = (hours: '1' | '3' | '25'): Operation => ({ kind: 'budget', user: null, hours });

it('is recorded once when it is asked for twice with the same key', async () => {
  const ask = await newProject();
  const twice = [create('alice', { key: 'k' }), create('alice', { key: 'k' })];
  expect(await ask(...twice)).toEqual(['recorded', 'known']);
});

it('is recorded once when it is asked for twice with the same id', async () => {
  const ask = await newProject();
  const twice = [create('bob', { id: 'A' }), create('bob', { id: 'A' })];
  expect(await ask(...twice)).toEqual(['recorded', 'known']);
});

it('is judged by the budget that a part before it has set, and by what those before it have taken', async () => {
  const ask = await newProject();
  const users = ['alice', 'bob', 'carol', 'dave'];
  expect(await ask(budget('25'), ...users.map((user) => create(user)))).toEqual([
    expect.any(BigInt),
    ...users.map(() => 'recorded'),
  ]);
  const more = users.map((user) => create(user));
  expect((await ask(budget('3'), ...more)).slice(1)).toEqual(users.map(() => 'too much'));
  expect((await ask(...more.slice(2), budget('25'), ...more.slice(2))).toSpliced(2, 1)).toEqual([
    ...['too much', 'too much', 'recorded', 'recorded'],
  ]);
});

it('takes nothing from what is known when it breaks after it has written', async () => {
  const ask = await newProject();
  // What his leases touch is known from the first one.
  expect((await ask(budget('3'), create('bob')))[1]).toBe('recorded');
  const broken = create('alice', { fate: 'breaks', hours: 2n });
  expect(await ask(broken, create('bob', { hours: 2n }), broken, create('carol'))).toEqual([
    ...['failed: broken', 'recorded', 'failed: broken', 'too much'],
  ]);
});

it('is refused alone when it holds what cannot be stored', async () => {
  const ask = await newProject();
  const hostile = create('alice', { fate: 'holds what cannot be stored' });
  const unreadable = create('alice', { key: 'a\0b' });
  expect(await ask(create('bob'), hostile, create('carol'), unreadable, create('dave'))).toEqual([
    'recorded',
    expect.stringContaining('0x00'),
    'recorded',
    expect.stringContaining('0x00'),
    'recorded',
  ]);
});

it('asks the database once for all of them, and writes without waiting', async () => {
  const ask = await newProject();
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
    ...['SAVEPOINT part', 'insert into "leases"', 'insert into "accounts"', 'insert into "entries"'],
    'RELEASE SAVEPOINT part',
  ]);
  expect(statements).toHaveLength(6 + 10 * 5 + 1);
  expect(statements.at(-1)).toBe('COMMIT');
});
