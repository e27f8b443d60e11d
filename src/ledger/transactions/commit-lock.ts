/**
 * A lock for processes that are asked about one lease at the same time, if more than the ledger must record
 * it: until a request is answered, nobody knows whether what it has recorded stays.
 */
import { createHash, randomUUID } from 'node:crypto';
import { inTime, type Wait, waitFor } from '../../base/deadline.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import type { Ledger } from '../ledger.ts';
import { rows } from '../storage/database.ts';

/** From here on, 65,536 rows of `follower` are locks. They are not deleted: leases share them. */
const FIRST = 65_536n;
/** Duration until it is renewed, in microseconds: a repetition waits so long for a dead process. */
const HELD = 10n * MICROSECONDS_PER_SECOND;
const RENEW_MS = 5_000;
/** Pause before the next attempt to acquire it. */
const PAUSE_MS = 100;

/**
 * Resolves when no other process decides the lease, to a function that releases the lock, and never rejects.
 *
 * @throws LedgerUnavailableError
 */
export async function acquireCommitLock(
  ledger: Ledger,
  lease: string,
  wait: Wait,
): Promise<() => Promise<void>> {
  const { queries } = ledger.database;
  const id = FIRST + BigInt(createHash('sha256').update(lease).digest().readUInt16BE());
  const holder = randomUUID();
  const isTaken = async () => {
    const now = ledger.now();
    const held = { holder, held_until: now + HELD };
    const take = queries
      .insertInto('follower')
      .values({ id, ...held })
      .onConflict((conflict) =>
        conflict
          .column('id')
          .doUpdateSet(held)
          .where((row) =>
            row.or([
              row('follower.held_until', '<=', now),
              // The clock was set back since: the holder may be dead.
              row('follower.held_until', '>', now + 2n * HELD),
            ]),
          ),
      )
      .returning('id');
    return (await ledger.transact('commit', () => rows(take.compile()), wait)).length > 0;
  };
  while (!(await isTaken())) {
    await inTime(new Promise((resolve) => setTimeout(resolve, PAUSE_MS)), wait);
  }
  const hold = (until: bigint) => {
    const own = queries
      .updateTable('follower')
      .set({ held_until: until })
      .where('id', '=', id)
      .where('holder', '=', holder);
    // If it fails, the lock expires.
    return ledger.transact('commit', () => rows(own.compile()), waitFor(undefined)).catch(() => {});
  };
  const renewing = setInterval(() => void hold(ledger.now() + HELD), RENEW_MS);
  return async () => {
    clearInterval(renewing);
    await hold(0n);
  };
}
