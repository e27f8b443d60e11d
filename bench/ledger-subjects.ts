/** The ledger, and the subjects to compare it with. */

import pg from 'pg';
import type { Dialect } from '../src/ledger/storage/connection.ts';
import {
  openSqlite,
  type SqliteConnection,
  type SqliteStatement,
} from '../src/ledger/storage/sqlite-driver.ts';
import { amount } from './harness/amount.ts';
import type { Subject } from './harness/suite.ts';
import { newLedger } from './ledger-databases.ts';
import { create, enforcementAt, requestsOf } from './ledger-leases.ts';
import { renamed, statementsOfLeases } from './ledger-statements.ts';

/** Per batch: enough for the clock's resolution. */
const LEASES = amount(20, 2);
/** The number of different leases whose statements are repeated. */
const SAID_LEASES = amount(100, 10);

/** The number of concurrent clients. */
export const CROWD = 64;
/** The text length of a bare row, like that of a lease in the ledger. */
const ROW = 500;

/** Creates leases by checks with their recording transactions; with `dryRun`, only checks. */
export async function creating(connection: string, dryRun = false): Promise<Subject> {
  const enforcement = await enforcementAt(connection);
  const nextRequest = requestsOf(`${process.pid} `);
  await create(enforcement, nextRequest(), dryRun);
  return {
    operations: LEASES,
    async batch() {
      for (let count = 0; count < LEASES; count += 1) {
        await create(enforcement, nextRequest(), dryRun);
      }
    },
    close: () => enforcement.close(),
  };
}

/** The same by concurrent clients: each sends its next request after a response. */
export async function creatingAtOnce(connection: string): Promise<Subject> {
  const enforcement = await enforcementAt(connection);
  const nextRequest = requestsOf(`${process.pid} `);
  await create(enforcement, nextRequest());
  const client = async () => {
    for (let count = 0; count < LEASES; count += 1) {
      await create(enforcement, nextRequest());
    }
  };
  return {
    operations: CROWD * LEASES,
    batch: () => Promise.all(Array.from({ length: CROWD }, client)),
    close: () => enforcement.close(),
  };
}

/** Rows with one text, `together` in a transaction: the speed of the disk. */
export async function bareRows(together: number): Promise<Subject> {
  const database = durable(await newLedger('sqlite'));
  database.exec('CREATE TABLE rows (text TEXT)');
  const statement = database.prepare('INSERT INTO rows VALUES (?)');
  const text = 'x'.repeat(ROW);
  const begin = database.prepare('BEGIN IMMEDIATE');
  const commit = database.prepare('COMMIT');
  const batch = () => {
    begin.run([]);
    for (let count = 0; count < together; count += 1) {
      statement.run([text]);
    }
    commit.run([]);
  };
  return { operations: together, batch, close: () => database.close() };
}

/** Durable like the ledger. */
function durable(connection: string): SqliteConnection {
  const database = openSqlite(connection.slice('sqlite://'.length), { timeout: 0, bigints: true });
  for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'foreign_keys = ON']) {
    database.exec(`PRAGMA ${pragma}`);
  }
  return database;
}

/** The same statements with the same values, on a new ledger, with better-sqlite3 alone. */
export async function bareSqlite(): Promise<Subject> {
  const leases = await statementsOfLeases('sqlite', SAID_LEASES);
  const database = durable(await newLedger('sqlite'));
  const prepared = new Map<string, SqliteStatement>();
  const known = leases.map((statements) =>
    statements.map((said) => {
      const statement = prepared.get(said.sql) ?? database.prepare(said.sql);
      prepared.set(said.sql, statement);
      return { said, statement };
    }),
  );
  let count = 0;
  const next = () => {
    const round = Math.floor(count / known.length);
    for (const { said, statement } of known[count % known.length] ?? []) {
      const parameters = renamed(said, round);
      if (statement.reader) {
        statement.all(parameters);
      } else {
        statement.run(parameters);
      }
    }
    count += 1;
  };
  next();
  expectLeases(database.prepare('SELECT count(*) AS leases FROM leases').all([])[0], 1);
  return {
    operations: LEASES,
    batch() {
      for (let lease = 0; lease < LEASES; lease += 1) {
        next();
      }
    },
    close: () => database.close(),
  };
}

/** The same statements with the same values, on a new ledger, with pg alone: a pool connection per lease. */
export async function barePostgres(): Promise<Subject> {
  const leases = await statementsOfLeases('postgresql', SAID_LEASES);
  const pool = new pg.Pool({ connectionString: await newLedger('postgresql') });
  let count = 0;
  const next = async () => {
    const round = Math.floor(count / leases.length);
    const client = await pool.connect();
    for (const said of leases[count % leases.length] ?? []) {
      await client.query(said.sql, [...renamed(said, round)]);
    }
    client.release();
    count += 1;
  };
  await next();
  expectLeases((await pool.query('SELECT count(*) AS leases FROM leases')).rows[0], 1);
  return {
    operations: LEASES,
    async batch() {
      for (let lease = 0; lease < LEASES; lease += 1) {
        await next();
      }
    },
    close: () => pool.end(),
  };
}

/** The time from the configuration to a usable ledger. */
export function opening(connection: string): Subject {
  return {
    operations: 1,
    async batch() {
      const started = performance.now();
      const enforcement = await enforcementAt(connection);
      const milliseconds = performance.now() - started;
      await enforcement.close();
      return { milliseconds };
    },
  };
}

export async function creatingOnNew(dialect: Dialect): Promise<Subject> {
  return creating(await newLedger(dialect));
}

function expectLeases(row: unknown, leases: number): void {
  const found = typeof row === 'object' && row !== null && 'leases' in row ? Number(row.leases) : undefined;
  if (found !== leases) {
    throw new Error(`expected ${leases} leases in the ledger, got ${found}`);
  }
}
