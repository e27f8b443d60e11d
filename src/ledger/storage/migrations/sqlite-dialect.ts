/** SQLite for migrations: kysely runs the queries. Creates the file if it does not exist. */
import { closeSync, fchownSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { SqliteAdapter, SqliteDialect } from 'kysely';
import { openSqlite } from '../sqlite-driver.ts';
import { MILLISECONDS_TO_OPEN } from '../sqlite-file.ts';

export function sqliteDialect(file: string): SqliteDialect {
  if (process.geteuid?.() === 0) {
    createForService(file);
  }
  const connection = openSqlite(file, { timeout: MILLISECONDS_TO_OPEN });
  connection.exec('PRAGMA journal_mode = WAL');
  connection.exec('PRAGMA synchronous = FULL');
  return new TransactionalDialect({ database: connection });
}

/**
 * Gives the file to the owner of the folder, the user of the service, who could not open a file of root.
 * SQLite's other files get the same owner.
 */
function createForService(file: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'wx');
  } catch {
    // It exists, or cannot be created: SQLite reports the reason.
    return;
  }
  try {
    const { uid, gid } = statSync(dirname(file));
    fchownSync(descriptor, uid, gid);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Creates tables in transactions, which SQLite supports and kysely does not use by default: an interrupted
 * upgrade changes nothing.
 */
class TransactionalDialect extends SqliteDialect {
  override createAdapter(): SqliteAdapter {
    return new TransactionalAdapter();
  }
}

class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}
