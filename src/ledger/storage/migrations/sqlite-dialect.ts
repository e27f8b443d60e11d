/** SQLite for migrations: kysely runs the queries itself. Creates the file if it does not exist. */
import SqliteConnection from 'better-sqlite3';
import { SqliteAdapter, SqliteDialect } from 'kysely';
import { MILLISECONDS_TO_OPEN } from '../sqlite-file.ts';

export function sqliteDialect(file: string): SqliteDialect {
  const connection = new SqliteConnection(file, { timeout: MILLISECONDS_TO_OPEN });
  connection.pragma('journal_mode = WAL');
  connection.pragma('synchronous = FULL');
  return new TransactionalDialect({ database: connection });
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
