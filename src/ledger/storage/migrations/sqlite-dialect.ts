/** SQLite for migrations: kysely runs the queries itself. Creates the file if it does not exist. */
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

/** The owner of the folder is the user of the service, who could not open a file of root. SQLite's files beside it follow this one. */
function createForService(file: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'wx');
  } catch {
    // It is there already, or cannot be made: SQLite reports why.
    return;
  }
  try {
    const { uid, gid } = statSync(dirname(file));
    fchownSync(descriptor, uid, gid);
  } finally {
    closeSync(descriptor);
  }
}

/** Creates tables in transactions, as SQLite can and kysely does not by itself: an interrupted upgrade changes nothing. */
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
