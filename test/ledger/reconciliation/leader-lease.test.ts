import { describe, expect, it } from 'vitest';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import {
  acquireLeaderLease,
  blazarLeader,
  releaseLeaderLease,
  renewLeaderLease,
} from '../../../src/ledger/reconciliation/leader-lease.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { DIALECTS, NO_WAIT, newLedgers, openedLedger } from '../../support/ledgers.ts';

const newLedger = newLedgers();
const LEADER = blazarLeader('http://blazar');

describe.each(DIALECTS)('the leader lease of the follower on %s', (dialect) => {
  it('is taken by one at a time, and taken over when its holder is gone', async () => {
    const connection = await newLedger(dialect);
    // Their own clocks, which differ, do not count.
    const one = await openedLedger(connection, { now: () => '2020-01-01T00:00:00Z' });
    const other = await openedLedger(connection, { now: () => '2040-01-01T00:00:00Z' });
    expect(await acquireLeaderLease(one, 'one', 60, NO_WAIT, LEADER)).toMatchObject({ kind: 'mine' });
    expect(await acquireLeaderLease(other, 'other', 60, NO_WAIT, LEADER)).toEqual({
      kind: 'held',
      holder: 'one',
    });
    expect(await renewLeaderLease(one, 'one', NO_WAIT)).toBe(true);
    // As after `kill -9`: nobody renews it, and half a minute goes by.
    await expire(one);
    expect(await acquireLeaderLease(other, 'other', 60, NO_WAIT, LEADER)).toMatchObject({ kind: 'mine' });
    expect(await renewLeaderLease(one, 'one', NO_WAIT)).toBe(false);
    // One that is back late frees nothing that another one holds.
    await releaseLeaderLease(one, 'one', undefined, NO_WAIT);
    expect(await acquireLeaderLease(one, 'one', 60, NO_WAIT, LEADER)).toEqual({
      kind: 'held',
      holder: 'other',
    });
  });

  it('is taken over when its holder is gone and the clock was set back since, and not before', async () => {
    const ledger = await openedLedger(await newLedger(dialect));
    await acquireLeaderLease(ledger, 'one', 60, NO_WAIT, LEADER);
    await holdFor(ledger, 35);
    expect(await acquireLeaderLease(ledger, 'other', 60, NO_WAIT, LEADER)).toEqual({
      kind: 'held',
      holder: 'one',
    });
    // It was taken by a clock that was an hour ahead.
    await holdFor(ledger, 3600);
    expect(await acquireLeaderLease(ledger, 'other', 60, NO_WAIT, LEADER)).toMatchObject({ kind: 'mine' });
    expect(await renewLeaderLease(ledger, 'one', NO_WAIT)).toBe(false);
  });

  it('is not taken again before the interval is over, but after a round that was not complete', async () => {
    const ledger = await openedLedger(await newLedger(dialect));
    const left = { isGood: false, matched: 'an endpoint', doubted: new Set([7n, 2n ** 53n + 1n]) };
    await acquireLeaderLease(ledger, 'one', 60, NO_WAIT, LEADER);
    await releaseLeaderLease(ledger, 'one', left, NO_WAIT);
    const leader = { age: Number.POSITIVE_INFINITY, matched: 'an endpoint', doubted: left.doubted };
    expect(await acquireLeaderLease(ledger, 'other', 60, NO_WAIT, LEADER)).toEqual({ kind: 'mine', leader });
    await releaseLeaderLease(ledger, 'other', { ...left, isGood: true }, NO_WAIT);
    expect(await acquireLeaderLease(ledger, 'one', 60, NO_WAIT, LEADER)).toMatchObject({ kind: 'early' });
    expect(await acquireLeaderLease(ledger, 'one', 0, NO_WAIT, LEADER)).toMatchObject({ kind: 'mine' });
  });

  it('is another one for another Blazar', async () => {
    const ledger = await openedLedger(await newLedger(dialect));
    const left = { isGood: true, matched: null, doubted: new Set<bigint>() };
    await acquireLeaderLease(ledger, 'one', 60, NO_WAIT, LEADER);
    await releaseLeaderLease(ledger, 'one', left, NO_WAIT);
    const other = blazarLeader('http://another');
    expect(await acquireLeaderLease(ledger, 'other', 60, NO_WAIT, other)).toMatchObject({
      kind: 'mine',
      leader: { age: Number.POSITIVE_INFINITY },
    });
  });

  it('is taken by one of many who want it at once', async () => {
    const connection = await newLedger(dialect);
    const ledgers = await Promise.all([1, 2, 3, 4].map(() => openedLedger(connection)));
    const taken = await Promise.all(
      ledgers.map((ledger, index) => acquireLeaderLease(ledger, `${index}`, 0, NO_WAIT, LEADER)),
    );
    expect(taken.filter(({ kind }) => kind === 'mine')).toHaveLength(1);
  });
});

function expire(ledger: Ledger): Promise<void> {
  return heldUntil(ledger, 1n);
}

/** From now on, by the clock of the database. */
function holdFor(ledger: Ledger, seconds: number): Promise<void> {
  return heldUntil(ledger, BigInt(Date.now() + seconds * 1000) * 1000n);
}

async function heldUntil(ledger: Ledger, held_until: bigint): Promise<void> {
  const query = ledger.database.queries.updateTable('follower').set({ held_until });
  await ledger.transact('reconcile', () => rows(query.compile()), NO_WAIT);
}
