/** One upgrade of a ledger on PostgreSQL at a time: two that build or drop the same index end each other's work. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';

const LOOK_EVERY_MS = 200;

/** Rejects if the lock is lost: another upgrade may have begun. Call it before each change, with the connection that makes the change. */
export type StillAlone = (database: Kysely<unknown>) => Promise<void>;

/**
 * Runs the work when no other upgrade of this database does. Holds a lock in a transaction on a connection of its own, so that it ends
 * with the process, and passes through a pooler; the work needs a second connection. If that transaction ends while the work goes on, the
 * work stops at its next `stillAlone`, and begins again when the lock is free. Whoever waits asks again and again: a query that waits for
 * the lock has a snapshot, for which a build of an index would wait.
 */
export async function alone<Result>(
  database: Kysely<unknown>,
  work: (stillAlone: StillAlone) => Promise<Result>,
): Promise<Result> {
  let outcome: { readonly result: Result } | undefined;
  let isLost = false;
  const attempt = async (connection: Kysely<unknown>) => {
    // Without an isolation level that keeps a snapshot, whatever the database's default is.
    await connection
      .transaction()
      .setIsolationLevel('read committed')
      .execute(async (held) => {
        const holder = await lockedBy(held);
        if (holder !== undefined) {
          const stillAlone = async (worker: Kysely<unknown>) => {
            isLost = !(await isHeldBy(holder, worker));
            if (isLost) {
              throw new Error('the connection that held the lock of the upgrade is gone');
            }
          };
          outcome = { result: await work(stillAlone) };
        }
      });
  };
  for (;;) {
    try {
      await database.connection().execute(attempt);
    } catch (thrown) {
      // The connection that held the lock may be gone: what is done is done.
      if (outcome === undefined && !isLost) {
        throw thrown;
      }
    }
    if (outcome !== undefined) {
      return outcome.result;
    }
    await pause(LOOK_EVERY_MS);
  }
}

/**
 * Takes the lock, unless somebody has it: then `undefined`. It is held while its connection has nothing to do, which may take hours. Returns
 * the virtual id of the transaction, which no other one ever has.
 */
async function lockedBy(held: Kysely<unknown>): Promise<string | undefined> {
  const lock = sql<{ is_locked: boolean; holder: string }>`select
    pg_try_advisory_xact_lock(hashtextextended('blazar-enforcement ledger upgrade', 0)) as is_locked,
    (select virtualtransaction from pg_locks where locktype = 'virtualxid' and pid = pg_backend_pid()) as holder`;
  const [row] = (await lock.execute(held)).rows;
  if (row?.is_locked !== true) {
    return undefined;
  }
  await sql`select set_config(name, '0', true) from pg_settings
    where name in ('idle_in_transaction_session_timeout', 'transaction_timeout')`.execute(held);
  return row.holder;
}

async function isHeldBy(holder: string, database: Kysely<unknown>): Promise<boolean> {
  const lock = sql`select 1 from pg_locks where locktype = 'advisory' and granted and virtualtransaction = ${holder}`;
  return (await lock.execute(database)).rows.length > 0;
}
