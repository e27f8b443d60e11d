/** Fills ledgers with many copies of a recorded lease. */
import { open } from 'node:fs/promises';
import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import type { Dialect } from '../src/ledger/storage/connection.ts';
import { PROJECT, parsed } from './ledger-databases.ts';
import { create, enforcementAt, requestsOf } from './ledger-leases.ts';

/** The number of projects for the other leases. */
const OTHER_PROJECTS = 5000;
const SECOND = 1_000_000;
/** The interval between past leases. */
const EVERY = 300 * SECOND;

/**
 * Adds this number of leases. Half are ended leases of the measured project; of those of other projects, one
 * in a hundred is open. Each has two entries: for its recording, and for its end.
 */
export async function fillLedger(connection: string, leases: number): Promise<void> {
  await recordOne(connection);
  const { dialect } = parsed(connection);
  const database = new Kysely<never>({ dialect: await kyselyDialect(connection) });
  const run = async (text: string) => {
    await sql.raw(text).execute(database);
  };
  for (const text of dialect === 'sqlite' ? FASTER_SQLITE : FASTER_POSTGRES) {
    await run(text);
  }
  const columns = async (table: string) => {
    const known = await database.introspection.getTables();
    const names = known.find(({ name }) => name === table)?.columns.map(({ name }) => name) ?? [];
    return names.filter((name) => name !== 'id' || table === 'projects');
  };
  /** Copies rows of the pattern table, with some other columns. */
  const multiply = async (table: string, others: Readonly<Record<string, string>>, from: string) => {
    const names = await columns(table);
    const values = names.map((name) => others[name] ?? `pattern.${name}`);
    await run(
      `${NUMBERS(leases)} INSERT INTO ${table} (${names.join(', ')}) SELECT ${values.join(', ')} ${from}`,
    );
  };
  const isOpen = 'i % 200 = 1';
  const past = `(${leases} - i + 1) * ${EVERY}`;
  const ends = `CASE WHEN ${isOpen} THEN pattern.ends_at + i ELSE pattern.recorded_at - ${past} + ${EVERY - SECOND} END`;
  await run('BEGIN');
  // A statement that reads and writes the same table holds the rows twice.
  await run("CREATE TEMPORARY TABLE lease_pattern AS SELECT * FROM leases WHERE name = 'pattern 1'");
  await run(
    "CREATE TEMPORARY TABLE entry_pattern AS SELECT * FROM entries WHERE account = 'max_leases/project'",
  );
  const indexes = await indexesOf(database, dialect, ['leases', 'entries']);
  for (const { name } of indexes) {
    await run(`DROP INDEX ${name}`);
  }
  await multiply(
    'leases',
    {
      lease_id: "'lease-' || i",
      project_id: `CASE WHEN i % 2 = 0 THEN pattern.project_id ELSE 'project-' || ((i / 2) % ${OTHER_PROJECTS}) END`,
      user_id: "'user-' || i % 50",
      name: "'lease ' || i",
      starts_at: `pattern.recorded_at - ${past}`,
      ends_at: ends,
      state: `CASE WHEN ${isOpen} THEN 'open' ELSE 'ended' END`,
      ended_at: `CASE WHEN ${isOpen} THEN NULL ELSE ${ends} END`,
    },
    'FROM numbers, lease_pattern AS pattern',
  );
  const added = "lease.lease_id LIKE 'lease-%'";
  await multiply(
    'entries',
    { project_id: 'lease.project_id', lease: 'lease.id', at: 'lease.starts_at' },
    `FROM leases AS lease, entry_pattern AS pattern WHERE ${added}`,
  );
  for (const { definition } of indexes) {
    await run(definition);
  }
  const ofOthers = `FROM leases AS lease WHERE ${added} AND lease.project_id <> '${PROJECT}'`;
  await run(`INSERT INTO projects (project_id, revision) SELECT DISTINCT lease.project_id, 1 ${ofOthers}`);
  await run(
    `INSERT INTO accounts (project_id, name, balance) SELECT lease.project_id, 'max_leases/project', count(*) ${ofOthers} AND lease.state = 'open' GROUP BY lease.project_id`,
  );
  await multiply(
    'budgets',
    { project_id: 'other.project_id' },
    `FROM projects AS other, budgets AS pattern WHERE other.project_id <> '${PROJECT}'`,
  );
  await run('COMMIT');
  // As in a ledger that has existed for long.
  await run(dialect === 'sqlite' ? 'PRAGMA journal_mode = WAL' : 'VACUUM ANALYZE');
  await database.destroy();
  await onDisk(connection);
}

/** Flushes to disk, so that it is not written during a measurement. */
async function onDisk(connection: string): Promise<void> {
  const to = parsed(connection);
  if (to.dialect === 'sqlite') {
    const file = await open(to.file, 'r+');
    await file.sync();
    await file.close();
  }
}

/** The same with 10,000 projects; every second lease ended early. */
export async function fillForLists(connection: string, leases: number): Promise<void> {
  await fillLedger(connection, leases);
  const { dialect } = parsed(connection);
  const database = new Kysely<never>({ dialect: await kyselyDialect(connection) });
  const early = "state = 'ended' AND id % 2 = 0 AND lease_id LIKE 'lease-%'";
  await sql.raw(`UPDATE leases SET ended_at = ends_at - ${SECOND} WHERE ${early}`).execute(database);
  const users = `UPDATE leases SET user_id = 'user-' || CAST((id / 2) % 25 AS text) WHERE lease_id LIKE 'lease-%'`;
  await sql.raw(users).execute(database);
  const missing = `${NUMBERS(2 * OTHER_PROJECTS)} INSERT INTO projects (project_id, revision) SELECT 'project-' || i, 1 FROM numbers WHERE true ON CONFLICT DO NOTHING`;
  await sql.raw(missing).execute(database);
  await sql
    .raw(dialect === 'sqlite' ? 'PRAGMA wal_checkpoint(TRUNCATE)' : 'VACUUM ANALYZE')
    .execute(database);
  await database.destroy();
}

/** An incomplete ledger is deleted, so crash safety is not needed. */
const FASTER_SQLITE = [
  'PRAGMA journal_mode = MEMORY',
  'PRAGMA synchronous = OFF',
  'PRAGMA cache_size = -262144',
  'PRAGMA threads = 1',
];
const FASTER_POSTGRES = ["SET maintenance_work_mem = '512MB'", 'SET synchronous_commit = off'];

interface Index {
  readonly name: string;
  readonly definition: string;
}

/** Indexes without a constraint. Building them at the end sorts once instead of a write per row. */
async function indexesOf(
  database: Kysely<never>,
  dialect: Dialect,
  tables: readonly string[],
): Promise<readonly Index[]> {
  const among = tables.map((table) => `'${table}'`).join(', ');
  const text =
    dialect === 'sqlite'
      ? `SELECT name, sql AS definition FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN (${among})`
      : `SELECT indexname AS name, indexdef AS definition FROM pg_indexes WHERE schemaname = current_schema() AND tablename IN (${among}) AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conname = indexname)`;
  return (await sql.raw<Index>(text).execute(database)).rows;
}

/** Everything in one transaction on one connection. */
async function kyselyDialect(connection: string) {
  const to = parsed(connection);
  return to.dialect === 'sqlite'
    ? (await import('../src/ledger/storage/migrations/index.ts')).sqliteDialect(to.file)
    : new PostgresDialect({ pool: new pg.Pool({ connectionString: to.url }) });
}

/** The pattern: a recorded lease that has ended. */
async function recordOne(connection: string): Promise<void> {
  const enforcement = await enforcementAt(connection);
  const request = requestsOf('pattern ')();
  await create(enforcement, request);
  await enforcement.onEnd(request);
  await enforcement.close();
}

function NUMBERS(count: number): string {
  return `WITH RECURSIVE numbers(i) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT i + 1 FROM numbers WHERE i < ${count})`;
}
