/** Records the ledger's database statements for new leases, to run them without the ledger. */

import pg from 'pg';
import type { Dialect } from '../src/ledger/storage/connection.ts';
import {
  openSqlite,
  type SqliteConnection,
  type SqliteStatement,
} from '../src/ledger/storage/sqlite-driver.ts';
import { newLedger } from './ledger-databases.ts';
import { create, enforcementAt, NAME, requestsOf } from './ledger-leases.ts';

export interface SaidStatement {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  /** The index of the parameter with the lease's name; -1: none. */
  readonly name: number;
}

/** The statements of each lease, including the reads of the checks and the transaction that records it. */
export async function statementsOfLeases(dialect: Dialect, leases: number): Promise<SaidStatement[][]> {
  const connection = await newLedger(dialect);
  if (dialect === 'postgresql') {
    await beginIdsAt(connection, FIRST_ID);
  }
  const enforcement = await enforcementAt(connection);
  const said: SaidStatement[][] = [];
  const note = (sql: string, parameters: readonly unknown[] = []) => {
    const name = parameters.findIndex((value) => typeof value === 'string' && value.startsWith(NAME));
    said.at(-1)?.push({ sql, parameters: [...parameters], name });
  };
  const stopListening = dialect === 'sqlite' ? listenToSqlite(note) : listenToPostgres(note);
  try {
    const nextRequest = requestsOf();
    for (let lease = 0; lease < leases; lease += 1) {
      said.push([]);
      await create(enforcement, nextRequest());
    }
  } finally {
    stopListening();
    await enforcement.close();
  }
  return said;
}

/** On PostgreSQL, the id of a lease is read before it is added: it is the largest number of a statement. */
const FIRST_ID = 7n * 10n ** 18n;
/** More than the number of leases. */
const IDS_OF_ROUND = 1_000_000n;

async function beginIdsAt(connection: string, first: bigint): Promise<void> {
  const client = new pg.Client(connection);
  await client.connect();
  await client.query(`ALTER SEQUENCE leases_id_seq RESTART WITH ${first}`);
  await client.end();
}

/** The parameters with another name and id for the lease. */
export function renamed({ parameters, name }: SaidStatement, round: number): readonly unknown[] {
  return parameters.map((value, index) =>
    index === name
      ? `${String(value)} ${round}`
      : isLeaseId(value)
        ? value + IDS_OF_ROUND * BigInt(round)
        : value,
  );
}

function isLeaseId(value: unknown): value is bigint {
  return typeof value === 'bigint' && value >= FIRST_ID;
}

type Note = (sql: string, parameters?: readonly unknown[]) => void;

function listenToSqlite(note: Note): () => void {
  const database = openSqlite(':memory:');
  const statement: SqliteStatement = Object.getPrototypeOf(database.prepare('SELECT 1'));
  const connection: SqliteConnection = Object.getPrototypeOf(database);
  database.close();
  const { exec } = connection;
  const { all, run } = statement;
  connection.exec = function (sql) {
    note(sql);
    return exec.call(this, sql);
  };
  statement.all = function (parameters) {
    note(this.source, parameters);
    return all.call(this, parameters);
  };
  statement.run = function (parameters) {
    note(this.source, parameters);
    return run.call(this, parameters);
  };
  return () => {
    connection.exec = exec;
    Object.assign(statement, { all, run });
  };
}

function listenToPostgres(note: Note): () => void {
  const client = pg.Client.prototype as { query: (...asked: unknown[]) => unknown };
  const { query } = client;
  client.query = function (this: pg.Client, ...asked) {
    const [{ text, values = [] }] = asked as [pg.QueryConfig];
    note(text, values);
    return query.apply(this, asked);
  };
  return () => {
    client.query = query;
  };
}
