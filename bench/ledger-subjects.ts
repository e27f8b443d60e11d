/** The ledger, and those that it is compared with. */

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

/** In one batch: enough for a clock to see. */
const LEASES = amount(20, 2);
/** How many different ones are said again and again. */
const SAID_LEASES = amount(100, 10);

/** As many as wait at the same time. */
export const CROWD = 64;
/** The length of the texts of a bare row, as that of a lease in the ledger. */
const ROW = 500;

/** Leases are created, or would be: checks, and with them the transaction that records a lease. */
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

/** The same by clients that ask at the same time: each asks again when it is answered. */
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

/** Rows of one text, so many in a transaction: what the disk can do. */
export async function bareRows(together: number): Promise<Subject> {
  const database = durable(await newLedger('sqlite'));
  database.exec('CREATE TABLE rows (text TEXT)');
  const statement = database.prepare('INSERT INTO rows VALUES (?)');
  const text = 'x'.repeat(ROW);
  const [begin, commit] = [database.prepare('BEGIN IMMEDIATE'), database.prepare('COMMIT')];
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

/** The same statements with the same values, on a new ledger, by better-sqlite3 alone. */
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

/** The same statements with the same values, on a new ledger, by pg alone: each lease with one connection of a pool. */
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

/** How long it takes from the configuration to a ledger that can be asked. */
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
