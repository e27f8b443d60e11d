/**
 * Upgrades PostgreSQL while services run: builds indexes without blocking writes, and limits waits for locks. kysely
 * runs the queries.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { ConnectionOptions } from 'node:tls';
import { type Kysely, type Migration, PostgresAdapter, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { codeOf } from '../../../base/errors.ts';
import { whileAlive } from '../postgres/liveness.ts';
import { requireServer } from '../postgres/pool.ts';
import { isTlsRefusal, unavailable } from '../postgres/queries.ts';
import { postgresPlace } from '../postgres/settings.ts';
import { LARGE_INDEXES, type LargeIndex } from './versions.ts';

const LOOK_EVERY_MS = 200;
/**
 * An upgrade that has lost its lock may have just sent a statement: the server has started it within this
 * time, in milliseconds.
 */
const BEGUN_WITHIN_MS = 1000;

/**
 * While a migration waits for a lock, others queue behind it: it gives up after this time, in milliseconds,
 * and retries later.
 */
const LOCK_TIMEOUT_MS = 1000;
const ATTEMPTS = 60;
const PAUSE_MS = 1000;

/**
 * Builds the indexes of later migrations whose tables exist. Takes minutes for many millions of rows, and
 * blocks no other queries. Rebuilds an index whose build was interrupted; waits for a build that still runs.
 * Not in a transaction. No other upgrade may run: two builds of indexes of one table wait for each other.
 */
export async function buildIndexesConcurrently(
  database: Kysely<unknown>,
  stillAlone: StillAlone,
): Promise<void> {
  for (const index of LARGE_INDEXES) {
    for (
      let state = await stateOf(database, index);
      state !== 'settled';
      state = await stateOf(database, index)
    ) {
      if (state === 'busy') {
        // Polls: a waiting query has a snapshot, and the build would wait for it.
        await pause(LOOK_EVERY_MS);
      } else {
        // Checks twice: of two concurrent builds on one table the server aborts one as a deadlock.
        await pause(BEGUN_WITHIN_MS);
        if ((await stateOf(database, index)) === state) {
          await stillAlone(database);
          await build(database, index, state);
        }
      }
    }
  }
}

async function build(
  database: Kysely<unknown>,
  { name, table, columns, condition }: LargeIndex,
  state: 'absent' | 'half',
): Promise<void> {
  const statement =
    state === 'half'
      ? `drop index concurrently if exists ${name}`
      : `create index concurrently ${name} on ${table} (${columns.join(', ')})${condition === undefined ? '' : ` where ${condition}`}`;
  try {
    await sql.raw(statement).execute(database);
  } catch (thrown) {
    if (!OVERTAKEN.has(codeOf(thrown))) {
      throw thrown;
    }
  }
}

/**
 * `settled`: the index is complete, or its table does not exist. `busy`: another session changes the table or
 * waits for it, such as the statement of a killed upgrade that still runs. Every build, drop or vacuum holds
 * such a lock for its whole duration.
 */
async function stateOf(
  database: Kysely<unknown>,
  { name, table }: LargeIndex,
): Promise<'settled' | 'busy' | 'half' | 'absent'> {
  const query = sql<{ has_table: boolean; is_valid: boolean | null; is_busy: boolean }>`select
    to_regclass(${table}) is not null as has_table,
    (select indisvalid from pg_index where indexrelid = to_regclass(${name})) as is_valid,
    exists (select 1 from pg_locks where relation = to_regclass(${table})
      and database = (select oid from pg_database where datname = current_database())
      and mode in ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')) as is_busy`;
  const [row] = (await query.execute(database)).rows;
  if (row === undefined || !row.has_table || row.is_valid === true) {
    return 'settled';
  }
  if (row.is_busy) {
    return 'busy';
  }
  return row.is_valid === false ? 'half' : 'absent';
}

/** Migrations with a lock timeout. Not a session setting: a pooler would pass it on to a service. */
export function withLockTimeouts(
  migrations: Readonly<Record<string, Migration>>,
  stillAlone: StillAlone,
): Record<string, Migration> {
  const up = (migration: Migration) => async (database: Kysely<unknown>) => {
    await stillAlone(database);
    await sql`select set_config('lock_timeout', ${String(LOCK_TIMEOUT_MS)}, true)`.execute(database);
    await migration.up(database);
  };
  return Object.fromEntries(
    Object.entries(migrations).map(([name, migration]) => [name, { up: up(migration) }]),
  );
}

/** Retries after a lock timeout: nothing was changed. `migrate` returns its error. */
export async function retryOnLockTimeout<Result extends { readonly error?: unknown }>(
  migrate: () => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    const result = await migrate();
    if (attempt === ATTEMPTS || !NO_LOCK.has(codeOf(result.error))) {
      return result;
    }
    await pause(PAUSE_MS);
  }
}

/** lock_not_available, deadlock_detected. Source: PostgreSQL documentation, appendix A. */
const NO_LOCK: ReadonlySet<unknown> = new Set(['55P03', '40P01']);

/**
 * duplicate_table, unique_violation, deadlock_detected: the statements of a killed upgrade may still run, and
 * older versions do not wait for other upgrades. The state is checked again.
 */
const OVERTAKEN: ReadonlySet<unknown> = new Set(['42P07', '23505', '40P01']);

/**
 * Rejects if the lock is lost: another upgrade may have started. Call it before each change, on the
 * connection of the change.
 */
type StillAlone = (database: Kysely<unknown>) => Promise<void>;

/**
 * Runs the work while no other upgrade of this database runs. Holds a lock in a transaction on a separate
 * connection, so that it ends with the process and works through a pooler; the work needs a second
 * connection. If that transaction ends during the work, the work stops at its next `stillAlone` and restarts
 * when the lock is free. Waits by polling: a query that waits for the lock has a snapshot, and building an
 * index would wait for it.
 */
export async function alone<Result>(
  database: Kysely<unknown>,
  work: (stillAlone: StillAlone) => Promise<Result>,
): Promise<Result> {
  let outcome: { readonly result: Result } | undefined;
  let isLost = false;
  const attempt = async (connection: Kysely<unknown>) => {
    // Without an isolation level that keeps a snapshot, whatever the database's default.
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
      // The connection that held the lock may be gone; completed work stays.
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
 * Takes the lock; `undefined` = another upgrade holds it. It is held while its connection is idle, which may
 * take hours. Returns the virtual id of the transaction, which is unique.
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

/** One for the work, one for the lock of the upgrade. */
const CONNECTIONS = 2;
/** How long connecting may take, and a statement until the server is asked whether it lives, in milliseconds. */
const PATIENCE_MS = 10_000;

interface Server {
  readonly dialect: PostgresDialect;
  /** Awaits an upgrade, as long as the server lives. @throws LedgerUnavailableError */
  whileAlive<Answer>(answer: Promise<Answer>): Promise<Answer>;
}

export function serverAt(url: string): Server {
  const { config, attempts, given } = postgresPlace(url);
  const options = given.map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\\s]/g, '\\$&')}`).join(' ');
  // Without options, a pooler need not support the parameter.
  const settings = { connectionTimeoutMillis: PATIENCE_MS, ...config, ...(options !== '' && { options }) };
  let ssl: ConnectionOptions | false = false;
  const clients = new Set<pg.PoolClient>();
  const connect = async () => {
    for (let refused = 0; ; refused += 1) {
      ssl = attempts[refused] ?? false;
      const pool = new pg.Pool({ ...settings, ssl, max: CONNECTIONS });
      pool.on('error', () => {});
      pool.on('connect', (client) => {
        clients.add(client);
        // For a connection in use, the failed query reports the error.
        client.on('error', () => {});
      });
      try {
        const client = await pool.connect();
        try {
          if (options !== '') {
            await requireServer(client);
          }
        } finally {
          client.release();
        }
        return pool;
      } catch (thrown) {
        await pool.end();
        if (refused + 1 >= attempts.length || !isTlsRefusal(unavailable(thrown))) {
          throw thrown;
        }
      }
    }
  };
  return {
    dialect: new UnlockedDialect({ pool: connect }),
    async whileAlive(answer) {
      try {
        return await whileAlive(answer, () => new pg.Client({ ...settings, ssl }), PATIENCE_MS);
      } catch (thrown) {
        // The pool would wait for their answers.
        for (const client of clients) {
          client.connection.stream.destroy();
        }
        throw thrown;
      }
    },
  };
}

/** kysely would lock in the session: a pooler may lock in one session and unlock in another. See `alone`. */
class UnlockedAdapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}

class UnlockedDialect extends PostgresDialect {
  override createAdapter(): PostgresAdapter {
    return new UnlockedAdapter();
  }
}
