import { describe, expect, it } from 'vitest';
import { rows as query } from '../../../src/ledger/storage/database.ts';
import { copiedLedgers, recordLease } from '../../ledger/recorded-leases.ts';
import { rows } from '../../support/check-command.ts';
import { ledgerAt, NO_WAIT } from '../../support/ledgers.ts';
import { printed, refused } from '../../support/run-command.ts';
import { COMING, commandsOn, fill } from './setup.ts';

const newLedger = copiedLedgers(fill);

async function filled() {
  const connection = await newLedger();
  return { connection, ...commandsOn(connection) };
}

const names = (stdout: string) =>
  rows(stdout).map((cells) => cells.join(' ').match(/first|second|third/)?.[0]);

describe('ledger list', () => {
  it('prints leases, newest first, and shows a lease past its end as ended', async () => {
    const { ledger } = await filled();
    const stdout = printed(await ledger('list'));
    expect(stdout.split('\n')[0]).toMatch(/^ROW +LEASE +PROJECT +USER +NAME +START +END +STATE$/);
    expect(names(stdout)).toEqual([undefined, 'third', 'second', 'first']);
    expect(stdout).toMatch(
      /^#1 +lease-1 +climate +alice +first +2096-12-01T00:00:00Z +2096-12-02T00:00:00Z +open$/m,
    );
    expect(stdout).toMatch(/^#2 +climate +bob +second .* ended$/m);
  });

  it('prints the selected leases', async () => {
    const { ledger } = await filled();
    const chosen = async (...flags: string[]) => names((await ledger('list', ...flags)).stdout).slice(1);
    expect(await chosen('--project', 'climate')).toEqual(['second', 'first']);
    expect(await chosen('--user', 'bob')).toEqual(['second']);
    expect(await chosen('--state', 'open')).toEqual(['third', 'first']);
    expect(await chosen('--state', 'ended')).toEqual(['second']);
    expect(await chosen('--limit', '1')).toEqual(['third']);
  });

  it('prints them as JSON', async () => {
    const { ledger } = await filled();
    const { stdout } = await ledger('list', '--format', 'json', '--user', 'alice', '--project', 'climate');
    expect(JSON.parse(stdout)).toMatchObject([
      { row: '1', lease_id: 'lease-1', region: '', state: 'open', ended_at: null },
    ]);
  });
});

describe('ledger show', () => {
  it('prints the lease, its charges and its history', async () => {
    const { ledger } = await filled();
    for (const key of ['lease-1', '#1']) {
      const stdout = printed(await ledger('show', key));
      expect(stdout).toMatch(/^name +first$/m);
      expect(stdout).toMatch(/^max_leases\/project +1$/m);
      expect(stdout).toMatch(/^usage_budget\/1 +24 node-hours +2096-12-01T00:00:00Z +2096-12-02T00:00:00Z$/m);
      expect(stdout).toMatch(/^2026-11-21T09:00:30Z +create +usage_budget\/1 +24 node-hours +alice +req-1$/m);
    }
  });

  it('prints amounts in JSON exactly, and in hours', async () => {
    const { ledger } = await filled();
    const [lease] = JSON.parse((await ledger('show', 'lease-1', '--format', 'json')).stdout);
    expect(lease.claims).toContainEqual({
      kind: 'usage',
      account: 'usage_budget/1',
      amount: '86400000000',
      unit_hours: '24',
      per_second: '1000000',
      from: '2096-12-01T00:00:00Z',
      until: '2096-12-02T00:00:00Z',
    });
    expect(lease.entries).toContainEqual(
      expect.objectContaining({ account: 'max_leases/project', amount: '1', operation: 'create' }),
    );
  });

  it('prints unconfirmed claims of a lease, and so does export', async () => {
    const { connection, ledger } = await filled();
    const opened = await ledgerAt(connection);
    await recordLease(opened, { name: 'first', leaseId: 'lease-1', ...COMING, end: '2096-12-03' });
    await opened.close();
    const { stdout } = await ledger('show', 'lease-1');
    expect(stdout).toMatch(/^usage_budget\/1 +48 node-hours /m);
    expect(stdout).toMatch(/^UNCONFIRMED +CLAIM +AMOUNT +FROM +UNTIL$/m);
    expect(stdout).toMatch(
      /^1 +usage_budget\/1 +24 node-hours +2096-12-01T00:00:00Z +2096-12-02T00:00:00Z$/m,
    );
    const [shown] = JSON.parse((await ledger('show', 'lease-1', '--format', 'json')).stdout);
    const [exported] = (await ledger('export')).stdout.split('\n').map((line) => JSON.parse(line || '{}'));
    for (const { unconfirmed } of [shown, exported]) {
      expect(unconfirmed).toHaveLength(1);
      expect(unconfirmed[0]).toContainEqual(
        expect.objectContaining({ account: 'usage_budget/1', unit_hours: '24' }),
      );
    }
  });

  it.each(['nothing', '#99'])('exits with 2 if the lease does not exist: %s', async (key) => {
    const { ledger } = await filled();
    expect(await ledger('show', key)).toEqual(
      refused(`the ledger has no lease ${key}; ledger list prints its leases`),
    );
  });
});

it('ledger export prints every lease, entry, budget and change as a line of JSON', async () => {
  const { ledger } = await filled();
  const kinds = (stdout: string) => {
    const counts = new Map<string, number>();
    for (const line of stdout.trimEnd().split('\n')) {
      const { kind } = JSON.parse(line);
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
    return [...counts];
  };
  expect(kinds((await ledger('export')).stdout)).toEqual([
    ['lease', 3],
    ['entry', 9],
    ['budget', 1],
    ['budget_change', 1],
  ]);
  expect(kinds((await ledger('export', '--project', 'ocean')).stdout)).toEqual([
    ['lease', 1],
    ['entry', 3],
  ]);
});

describe('ledger verify', () => {
  it('reports how much it compared', async () => {
    const { ledger } = await filled();
    expect(printed(await ledger('verify'))).toBe(
      'The ledger is consistent: balances 7, entries 9, leases 3, budgets 1\n',
    );
  });

  it('prints each difference and exits with 1', async () => {
    const { connection, ledger } = await filled();
    const book = await ledgerAt(connection);
    const { queries } = book.database;
    const wrong = queries
      .updateTable('accounts')
      .set({ balance: 7n })
      .where('name', '=', 'max_leases/user/bob');
    await book.transact('commit', () => query(wrong.compile()), NO_WAIT);
    await book.close();
    const { code, stdout } = await ledger('verify');
    expect(code).toBe(1);
    expect(stdout).toMatch(/^climate +balance +max_leases\/user\/bob +\d +7$/m);
    expect(stdout).toMatch(/^climate +held +max_leases\/user\/bob +\d +7$/m);
    expect(stdout).toContain('2 differences: ');
    const json = JSON.parse((await ledger('verify', '--format', 'json')).stdout);
    expect(json.differences).toHaveLength(2);
    expect(json.compared).toMatchObject({ leases: 3, budgets: 1 });
  });
});

it('no name of a lease sends control characters to the terminal', async () => {
  const { connection, ledger } = await filled();
  const book = await ledgerAt(connection);
  const hostile = '\u001b[2J\u009b31mred\r\nforged\u2028';
  await recordLease(book, { name: hostile, projectId: hostile, userId: hostile, leaseId: 'H', ...COMING });
  await book.close();
  for (const args of [
    ['list'],
    ['show', 'H'],
    ['list', '--format', 'json'],
    ['show', 'H', '--format', 'json'],
    ['export'],
  ]) {
    const { code, stdout } = await ledger(...args);
    expect({ args, code }).toEqual({ args, code: 0 });
    expect(stdout).toContain('forged');
    expect(stdout).not.toMatch(/(?!\n)[\p{Cc}\u2028\u2029]/u);
  }
});
