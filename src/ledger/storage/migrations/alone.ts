/** One upgrade of a ledger on PostgreSQL at a time: two that build or drop the same index end each other's work. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';

const LOOK_EVERY_MS = 200;

/**
 * Runs the work when no other upgrade of this database does. Holds a lock in a transaction on a connection of its own, so that it ends
 * with the process, and passes through a pooler; the work needs a second connection. Whoever waits asks again and again: a query that
 * waits for the lock has a snapshot, for which a build of an index would wait.
 */
export async function alone<Result>(database: Kysely<unknown>, work: () => Promise<Result>): Promise<Result> {
  let outcome: { readonly result: Result } | undefined;
  const attempt = async (holder: Kysely<unknown>) => {
    // Without an isolation level that keeps a snapshot, whatever the database's default is.
    await holder
      .transaction()
      .setIsolationLevel('read committed')
      .execute(async (held) => {
        if (await isLocked(held)) {
          outcome = { result: await work() };
        }
      });
  };
  for (;;) {
    try {
      await database.connection().execute(attempt);
    } catch (thrown) {
      // The connection that held the lock may be gone: what is done is done.
      if (outcome === undefined) {
        throw thrown;
      }
    }
    if (outcome !== undefined) {
      return outcome.result;
    }
    await pause(LOOK_EVERY_MS);
  }
}

/** Takes the lock, unless somebody has it. It is held while its connection has nothing to do, which may take hours. */
async function isLocked(held: Kysely<unknown>): Promise<boolean> {
  const lock = sql<{ is_locked: boolean }>`select
    pg_try_advisory_xact_lock(hashtextextended('blazar-enforcement ledger upgrade', 0)) as is_locked`;
  const [row] = (await lock.execute(held)).rows;
  if (row?.is_locked !== true) {
    return false;
  }
  await sql`select set_config(name, '0', true) from pg_settings
    where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')`.execute(held);
  return true;
}
