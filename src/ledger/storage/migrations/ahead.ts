/** What an upgrade of PostgreSQL does while services go on: builds indexes without a lock, and does not make others wait for locks. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, type Migration, sql } from 'kysely';
import { OPEN_LEASES } from './0008-open-leases.ts';
import { OWNERS } from './0010-growth.ts';
import type { StillAlone } from './alone.ts';
import type { LargeIndex } from './large-index.ts';

const INDEXES = [OPEN_LEASES, OWNERS];

const LOOK_EVERY_MS = 200;

/** While a migration waits for a lock, everybody else waits behind it: it gives up after so long, and tries again later. In milliseconds. */
const LOCK_TIMEOUT_MS = 1000;
const ATTEMPTS = 60;
const PAUSE_MS = 1000;

/**
 * Builds indexes that later migrations need, where their tables are already there. Takes minutes on tables of many millions of rows, and
 * locks nobody out. What an interrupted build has left is built again; one that the server goes on with is waited for. Not in a
 * transaction. Call it while no other upgrade runs: two that build an index of the same table wait for each other.
 */
export async function buildAhead(database: Kysely<unknown>, stillAlone: StillAlone): Promise<void> {
  for (const index of INDEXES) {
    for (
      let state = await stateOf(database, index);
      state !== 'settled';
      state = await stateOf(database, index)
    ) {
      if (state === 'busy') {
        // Polls: whoever waits in a query has a snapshot, for which the build would wait.
        await pause(LOOK_EVERY_MS);
      } else {
        await stillAlone(database);
        await build(database, index, state);
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
 * `settled`: the index is there as a whole, or its table is not. `busy`: somebody changes the table, or waits for it, such as a killed upgrade
 * whose statement the server goes on with. All that builds, drops or vacuums has such a lock from its first moment to its last.
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

/** The migrations, none of which waits for a lock for long. Not a setting of the session: a pooler would give it to a service. */
export function impatient(
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

/** Tries again where a lock could not be had: nothing was changed. `migrate` returns its error. */
export async function withPatience<Result extends { readonly error?: unknown }>(
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
 * duplicate_table, unique_violation, deadlock_detected: a killed upgrade leaves statements behind that the server goes on with, and an
 * older version does not wait for others. What is left is looked at again.
 */
const OVERTAKEN: ReadonlySet<unknown> = new Set(['42P07', '23505', '40P01']);

function codeOf(thrown: unknown): unknown {
  return thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
}
