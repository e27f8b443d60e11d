/** A database that commits, and can't say so any more. */
import { describe, expect, it, vi } from 'vitest';
import { CommitInDoubtError, type Database } from '../../src/ledger/database.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { verifyLedger } from '../../src/ledger/verify.ts';
import { ledgerAt, NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { recordLease } from './recorded-leases.ts';

const newLedger = newLedgers();

/** The first transaction is committed, and its answer lost. */
function losingOneAnswer(database: Database): Database {
  let isLost = false;
  return {
    queries: database.queries,
    async transact(work, wait) {
      const result = await database.transact(work, wait);
      if (isLost) {
        return result;
      }
      isLost = true;
      throw new CommitInDoubtError('the connection is gone', result, { cause: undefined });
    },
    read: (work, wait) => database.read(work, wait),
    snapshot: (work, wait) => database.snapshot(work, wait),
    close: () => database.close(),
  };
}

async function lossyLedger() {
  const ledger = await ledgerAt(await newLedger('sqlite'));
  const clock = { now: () => new Date('2026-11-21T09:00:30Z') };
  const lossy = new Ledger(losingOneAnswer(ledger.database), { clock, timeout: 10, observer: undefined });
  const states = async () => {
    const query = ledger.database.queries.selectFrom('leases').select('state').compile();
    return ledger.read(
      'read',
      function* () {
        return ((yield query) as { state: string }[]).map(({ state }) => state);
      },
      NO_WAIT,
    );
  };
  return { ledger, lossy, states };
}

describe('a commit whose answer is lost', () => {
  it('has failed for who asked, and is taken back as soon as the database answers', async () => {
    const { ledger, lossy, states } = await lossyLedger();
    await expect(recordLease(lossy, { name: 'run' })).rejects.toThrow('the connection is gone');
    await vi.waitFor(async () => expect(await states()).toEqual(['ended']));
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
    await ledger.close();
  });

  it('stays when the same lease is asked for again before, and is acknowledged', async () => {
    const { ledger, lossy, states } = await lossyLedger();
    // The taking back begins at once, and comes behind this one: a file has one writer.
    const takeBack = vi.spyOn(lossy, 'takeBack').mockResolvedValue(false);
    await expect(recordLease(lossy, { name: 'run' })).rejects.toThrow('the connection is gone');
    const [undo, author, wait] = takeBack.mock.calls[0] ?? [];
    takeBack.mockRestore();
    await recordLease(lossy, { name: 'run' });
    if (undo === undefined || author === undefined || wait === undefined) {
      throw new Error('expected that it is taken back');
    }
    expect(await lossy.takeBack(undo, author, wait)).toBe(false);
    expect(await states()).toEqual(['open']);
    await ledger.close();
  });
});
