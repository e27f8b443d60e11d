import { expect, it } from 'vitest';
import { pageOfChargedLeases } from '../../../src/ledger/budgets/history.ts';
import { exportLedger, leaseDetails, listLeases } from '../../../src/ledger/reports/reports.ts';
import { giveBudget, ledgerAt, NO_WAIT, openedLedger } from '../../support/ledgers.ts';
import { copiedLedgers, recordLease } from '../recorded-leases.ts';

const newLedger = copiedLedgers(async (connection) => {
  const ledger = await ledgerAt(connection);
  await giveBudget(ledger, { amount: '1000' });
  await recordLease(ledger, { name: 'a', leaseId: 'same', region: 'R1' });
  await recordLease(ledger, { name: 'b', leaseId: 'same', region: 'R2', end: '2026-12-04' });
  await recordLease(ledger, { name: 'c', projectId: 'ocean' });
  await ledger.close();
});

const open = async (now: string) => openedLedger(await newLedger(), { now: () => now });

it('a lease that is past its end has ended, even before that is noticed', async () => {
  const book = await open('2026-12-02T00:00:00Z');
  const [, b, a] = await listLeases(book, { limit: 10 }, NO_WAIT);
  expect(a).toMatchObject({ name: 'a', state: 'ended', endedAt: a?.end });
  expect(b).toMatchObject({ name: 'b', state: 'open', endedAt: null });
  const names = async (state: 'open' | 'ended') =>
    (await listLeases(book, { state, limit: 10 }, NO_WAIT)).map(({ name }) => name);
  expect([await names('open'), await names('ended')]).toEqual([['b'], ['c', 'a']]);
  const { items } = await pageOfChargedLeases(
    book,
    { projectId: 'climate', limit: 9, after: undefined },
    NO_WAIT,
  );
  expect(items.map(({ name }) => name)).toEqual(['b']);
});

it('listLeases finds the leases of a user in all regions, the newest first', async () => {
  const book = await open('2026-11-21T09:00:30Z');
  await recordLease(book, { name: 'd', region: 'R1', userId: 'bob' });
  const names = async (selection: { projectId?: string; state?: 'open' | 'ended'; limit?: number }) =>
    (await listLeases(book, { userId: 'alice', limit: 10, ...selection }, NO_WAIT)).map(({ name }) => name);
  expect(await names({})).toEqual(['c', 'b', 'a']);
  expect(await names({ limit: 2 })).toEqual(['c', 'b']);
  expect(await names({ projectId: 'climate', state: 'open' })).toEqual(['b', 'a']);
  expect(await names({ state: 'ended' })).toEqual([]);
});

it('leaseDetails finds leases of two regions with one id, and one of them by its row', async () => {
  const book = await open('2026-11-21T09:00:30Z');
  const both = await leaseDetails(book, 'same', NO_WAIT);
  expect(both.map(({ lease }) => lease.region)).toEqual(['R1', 'R2']);
  expect(both.map(({ entries }) => entries.length)).toEqual([3, 3]);
  expect(both[1]?.entries.every(({ lease }) => lease === 2n)).toBe(true);
  expect(await leaseDetails(book, 2n, NO_WAIT)).toEqual([both[1]]);
  expect(await leaseDetails(book, 'other', NO_WAIT)).toEqual([]);
});

it('exportLedger returns what existed when it started, whatever is recorded meanwhile', async () => {
  const book = await open('2026-11-21T09:00:30Z');
  const kinds: string[] = [];
  await exportLedger(
    book,
    undefined,
    async ({ kind }) => {
      kinds.push(kind);
      await recordLease(book, { name: `later ${kinds.length}`, projectId: 'desert' });
    },
    NO_WAIT,
  );
  expect(kinds.filter((kind) => kind === 'lease')).toHaveLength(3);
  expect(kinds.filter((kind) => kind === 'entry')).toHaveLength(9);
  expect(kinds.slice(-2)).toEqual(['budget', 'budget_change']);
});
