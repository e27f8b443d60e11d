import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  BudgetConflictError,
  BudgetLedger,
  ConfigurationError,
  InvalidRequestError,
  LedgerUnavailableError,
  UsageEnforcement,
} from '../../src/index.ts';
import { lookInto } from '../filters/on-ledger.ts';
import { valuesOnly } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { newLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { createHost } from '../support/requests.ts';
import { createDatabase } from '../support/shared-postgres.ts';

const ALICE = { projectId: 'climate', userId: 'alice', from: '2026-01-01' };
const YEAR = { projectId: 'climate', from: '2026-01-01', until: '2027-01-01', amount: '1000' };
const AUTHOR = { who: 'the lease service', reason: 'a grant' };

function sources(connection: string, enforcement = {}) {
  return valuesOnly({ ledger: { connection }, enforcement });
}

async function load(connection: string): Promise<BudgetLedger> {
  const ledger = await BudgetLedger.load(sources(connection));
  onTestFinished(() => ledger.close());
  return ledger;
}

const newFile = () => `sqlite://${join(temporaryFolder(), 'ledger.db')}`;

describe.each([
  ['a file', async () => newFile()],
  ['PostgreSQL', createDatabase],
])('a ledger in %s', (_, place) => {
  it('is created once, without any filter', async () => {
    const ledger = await load(await place());
    await expect(ledger.budgets()).rejects.toThrow(ConfigurationError);
    expect((await ledger.upgrade()).at(0)).toBe('0001-ledger');
    expect(await ledger.budgets()).toEqual([]);
    expect(await ledger.upgrade()).toEqual([]);
    expect(await ledger.budgets()).toEqual([]);
  });
});

describe('budgets', () => {
  it('are set, changed, listed and removed, and limit the leases of a chain', async () => {
    const connection = await newLedger();
    const ledger = await load(connection);
    const hour = 3_600_000_000n;
    const expected = { projectId: 'climate', userId: null, validFrom: 1_767_225_600n, taken: 0n };
    expect(await ledger.setBudget(YEAR, AUTHOR)).toMatchObject({ ...expected, left: 1000n * hour });
    const smaller = { ...YEAR, amount: 30, until: new Date('2027-06-01') };
    expect(await ledger.setBudget(smaller, { who: 'dean' })).toMatchObject({
      ...expected,
      id: 1n,
      amount: 30n * hour,
      validUntil: 1_811_808_000n,
    });
    await ledger.setBudget({ ...ALICE, until: '2028-01-01', amount: '2.5' }, AUTHOR);

    const enforcement = await UsageEnforcement.load(
      sources(connection, { enabled_filters: ['UsageBudgetFilter'] }),
      { logger: recordingLogger(), clock: { now: () => new Date('2026-11-21T09:00:30Z') } },
    );
    onTestFinished(() => enforcement.close());
    const { context, lease } = createHost();
    const create = () => enforcement.checkCreate({ context: { ...context, user_id: 'bob' }, lease });
    expect([(await create()).allowed, (await create()).allowed]).toEqual([true, false]);
    expect((await ledger.budgets('climate')).map(({ userId, left }) => [userId, left])).toEqual([
      [null, 6n * hour],
      ['alice', (5n * hour) / 2n],
    ]);
    expect(await ledger.budgets('ocean')).toEqual([]);
    expect([await ledger.removeBudget(ALICE, AUTHOR), await ledger.removeBudget(ALICE, AUTHOR)]).toEqual([
      true,
      false,
    ]);
    expect(await ledger.budgets()).toHaveLength(1);
    const { who, reason } = AUTHOR;
    expect(lookInto(connection).query('SELECT who, reason FROM budget_changes ORDER BY id')).toEqual([
      { who, reason },
      { who: 'dean', reason: null },
      { who, reason },
      { who, reason },
    ]);
  });

  it.each([
    ['projectId', { projectId: '' }, 'expected an id'],
    ['userId', { userId: 'a\0b' }, 'expected a text without NUL'],
    ['from', { from: 'soon' }, 'expected an ISO 8601 date, to the second, such as'],
    ['until', { until: '2026-01-01' }, 'expected a date after the start, got "2026-01-01"'],
    ['amount', { amount: 'much' }, 'expected a decimal number of unit-hours, 0 or more'],
    ['amount', { amount: 1e12 }, 'expected at most 2562047788.0152 unit-hours'],
    ['amount', { amount: '12345678901234567890.5' }, 'expected at most 2562047788.0152 unit-hours'],
  ])('are refused if %s is wrong (%j), and nothing is set', async (field, change, message) => {
    const ledger = await load(await newLedger());
    const refused = ledger.setBudget({ ...YEAR, ...change }, AUTHOR);
    await expect(refused).rejects.toThrow(InvalidRequestError);
    await expect(refused).rejects.toMatchObject({ field, message: expect.stringContaining(message) });
    expect(await ledger.budgets()).toEqual([]);
  });

  it('are refused if they overlap with another budget of the owner, which the error names', async () => {
    const ledger = await load(await newLedger());
    await ledger.setBudget(YEAR, AUTHOR);
    const refused = ledger.setBudget({ ...YEAR, from: '2026-06-01' }, AUTHOR);
    await expect(refused).rejects.toThrow(BudgetConflictError);
    await expect(refused).rejects.toMatchObject({ other: { id: 1n } });
  });
});

describe('a ledger that cannot be used', () => {
  it('fails with each call, not with load', async () => {
    const away = await load('postgresql://nobody@127.0.0.1:1/ledger');
    await expect(away.budgets()).rejects.toThrow(LedgerUnavailableError);
    await expect(away.upgrade()).rejects.toThrow(LedgerUnavailableError);
  });

  it('is not created before the first call', async () => {
    const connection = newFile();
    await load(connection);
    expect(existsSync(connection.slice('sqlite://'.length))).toBe(false);
    await expect(BudgetLedger.load(sources('mysql://host/ledger'))).rejects.toThrow(ConfigurationError);
  });

  it('refuses calls after close, which may be called twice', async () => {
    const ledger = await load(await newLedger());
    await ledger.budgets();
    await ledger.close();
    await ledger.close();
    await expect(ledger.budgets()).rejects.toThrow('the ledger is closed');
    await expect(ledger.upgrade()).rejects.toThrow('the ledger is closed');
  });
});
