/** Databases with the tables of sessions. */
import { onTestFinished } from 'vitest';
import type { Database } from '../../../src/ledger/storage/database.ts';
import { PostgresDatabase } from '../../../src/ledger/storage/postgres/postgres.ts';
import { SqliteDatabase } from '../../../src/ledger/storage/sqlite.ts';
import { type DIALECTS, newLedgers } from '../../support/ledgers.ts';

const newLedger = newLedgers();

export async function databaseOf(dialect: (typeof DIALECTS)[number]): Promise<Database> {
  const url = await newLedger(dialect);
  const database =
    dialect === 'sqlite'
      ? new SqliteDatabase(url.slice('sqlite://'.length))
      : new PostgresDatabase(url, { poolSize: 2, timeout: 60 });
  onTestFinished(() => database.close().catch(() => {}));
  return database;
}
