/** When a budget passes a threshold, and what is written then: on both databases. */
import { describe, expect, it } from 'vitest';
import { listBudgets, removeBudget } from '../../../src/ledger/budgets/budgets.ts';
import type { LeaseIdentity } from '../../../src/ledger/identity.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import type { BudgetWatch, Crossing } from '../../../src/ledger/outbox/crossings.ts';
import { listOutbox, outboxMessage } from '../../../src/ledger/outbox/reports.ts';
import {
  breakLedger,
  DIALECTS,
  giveBudget,
  NO_WAIT,
  newLedgers,
  openedLedger,
} from '../../support/ledgers.ts';
import { by, endLease, recordLease, recordNewLease } from '../recorded-leases.ts';

const newLedger = newLedgers();
const WATCH: BudgetWatch = {
  thresholds: [80, 95],
  senders: ['notifications'],
  body: ({ threshold, cause, budget, who }: Crossing, key) =>
    JSON.stringify({ threshold, cause, budget: Number(budget.id), who, key }),
};
/** A lease of a day takes 24 of them. */
const HUNDRED_HOURS = '100';

async function opened(connection: string, senders = WATCH.senders): Promise<Ledger> {
  return openedLedger(connection, { watch: { ...WATCH, senders } });
}

async function notices(ledger: Ledger): Promise<string[]> {
  const found = await listOutbox(ledger, { limit: 1000 }, NO_WAIT);
  const bodies = await Promise.all(found.map(({ id }) => outboxMessage(ledger, id, NO_WAIT)));
  return bodies.map((one) => {
    const { threshold, cause } = JSON.parse(one?.body ?? '{}');
    return `${one?.sender} ${one?.project_id} ${threshold} ${cause}`;
  });
}

const day = (name: string, leaseId: string | null = null) => ({ name, leaseId });
const days = (name: string, end: string) => ({ name, end });

describe.each(DIALECTS)('a ledger in %s', (dialect) => {
  it('announces each threshold once when leases pass it, and again only after it was left', async () => {
    const ledger = await opened(await newLedger(dialect));
    await giveBudget(ledger, { amount: HUNDRED_HOURS });
    const ids: LeaseIdentity[] = [];
    for (const name of ['a', 'b', 'c']) {
      ids.push(await recordLease(ledger, day(name, name)));
    }
    expect(await notices(ledger)).toEqual([]);
    ids.push(await recordLease(ledger, day('d', 'd')));
    expect(await notices(ledger)).toEqual([
      'notifications climate 80 create',
      'notifications climate 95 create',
    ]);
    const [first] = ids;
    for (let turn = 0; turn < 2; turn += 1) {
      await endLease(ledger, first as LeaseIdentity);
      expect(await notices(ledger)).toHaveLength(2);
    }
    await recordLease(ledger, { name: 'e', end: '2026-12-01T09:00Z' });
    expect((await notices(ledger)).slice(2)).toEqual(['notifications climate 80 create']);
    await recordLease(ledger, { name: 'f', end: '2026-12-01T01:00Z' });
    expect(await notices(ledger)).toHaveLength(3);
  });

  it('announces it exactly once when many replicas pass it at the same time', async () => {
    const connection = await newLedger(dialect);
    const replicas = await Promise.all([1, 2, 3].map(() => opened(connection)));
    const [ledger] = replicas as [Ledger];
    await giveBudget(ledger, { amount: HUNDRED_HOURS });
    await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        recordLease(replicas[index % 3] as Ledger, { name: `lease ${index}`, end: '2026-12-01T05:00Z' }),
      ),
    );
    expect((await notices(ledger)).sort()).toEqual([
      'notifications climate 80 create',
      'notifications climate 95 create',
    ]);
  });

  it('withdraws it with a lease that a later filter refuses, from every sender, and with no other', async () => {
    const ledger = await opened(await newLedger(dialect), ['notifications', 'notifications-mail']);
    await giveBudget(ledger, { amount: HUNDRED_HOURS });
    await recordLease(ledger, days('a', '2026-12-04'));
    await recordLease(ledger, { name: 'b', end: '2026-12-01T09:00Z' });
    const kept = await notices(ledger);
    expect(kept).toEqual(['notifications climate 80 create', 'notifications-mail climate 80 create']);
    const { recording } = await recordNewLease(ledger, { name: 'c', end: '2026-12-01T18:00Z' });
    expect(await notices(ledger)).toHaveLength(4);
    if (recording.undo === undefined) {
      throw new Error('expected something to take back');
    }
    expect(await ledger.takeBack(recording.undo, by('undo'), NO_WAIT)).toBe(true);
    expect(await notices(ledger)).toEqual(kept);
  });

  it('announces a budget that is set below what is taken, unless it is 0 or over', async () => {
    const ledger = await opened(await newLedger(dialect));
    await giveBudget(ledger, { amount: '1000' });
    await recordLease(ledger, day('a'));
    await giveBudget(ledger, { amount: '30' });
    expect(await notices(ledger)).toEqual(['notifications climate 80 budget']);
    await giveBudget(ledger, { amount: '29' });
    await giveBudget(ledger, { amount: '1000' });
    expect(await notices(ledger)).toHaveLength(1);
    await giveBudget(ledger, { amount: '24' });
    expect((await notices(ledger)).slice(1)).toEqual([
      'notifications climate 80 budget',
      'notifications climate 95 budget',
    ]);
    await giveBudget(ledger, { amount: '0' });
    await giveBudget(ledger, { amount: '1', until: '2026-11-01' });
    expect(await notices(ledger)).toHaveLength(3);
    // Set again after it was removed, it begins with what is taken.
    const [budget] = await listBudgets(ledger, 'climate', NO_WAIT);
    await removeBudget(ledger, budget as never, { who: 'operator', reason: null }, NO_WAIT);
    await giveBudget(ledger, { amount: '25' });
    expect(await notices(ledger)).toHaveLength(5);
  });
});

it('looks up budgets that the request has not read', async () => {
  const ledger = await opened(await newLedger('sqlite'));
  await giveBudget(ledger, { amount: '25', userId: 'bob' });
  // The claimant charges the budget of bob for a lease of alice.
  await recordLease(ledger, day('a'));
  expect(await notices(ledger)).toEqual([
    'notifications climate 80 create',
    'notifications climate 95 create',
  ]);
});

it('refuses the lease if the notice cannot be written: both are recorded, or neither', async () => {
  const connection = await newLedger('sqlite');
  const ledger = await opened(connection);
  await giveBudget(ledger, { amount: '25' });
  breakLedger(connection, 'outbox');
  await expect(recordLease(ledger, day('a'))).rejects.toThrow('outbox');
  expect(await listBudgets(ledger, 'climate', NO_WAIT)).toMatchObject([{ taken: 0n }]);
});
