/** Ledgers in files that are gone after the test. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import SqliteConnection from 'better-sqlite3';
import { parseConnection } from '../../src/ledger/connection.ts';
import { upgradeTables } from '../../src/ledger/migrations/index.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

let made: Promise<Buffer> | undefined;

/** An empty one, as `[ledger] connection` names it: tables are made once, and copied. */
export async function newLedger(): Promise<string> {
  made ??= makeLedger();
  const file = join(temporaryFolder(), 'ledger.db');
  writeFileSync(file, await made);
  return `sqlite://${file}`;
}

async function makeLedger(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-'));
  const file = join(folder, 'ledger.db');
  const connection = parseConnection(`sqlite://${file}`);
  if (connection === undefined) {
    throw new Error(`expected a connection to ${file}`);
  }
  await upgradeTables(connection);
  const bytes = readFileSync(file);
  rmSync(folder, { recursive: true });
  return bytes;
}

/** From now on it can't be read. */
export function breakLedger(connection: string): void {
  runSql(connection, 'ALTER TABLE leases RENAME TO leases_elsewhere');
}

export function mendLedger(connection: string): void {
  runSql(connection, 'ALTER TABLE leases_elsewhere RENAME TO leases');
}

function runSql(connection: string, sql: string): void {
  const database = new SqliteConnection(connection.slice('sqlite://'.length));
  database.exec(sql);
  database.close();
}
