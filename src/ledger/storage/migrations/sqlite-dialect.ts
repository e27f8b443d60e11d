/** SQLite for migrations: kysely runs the queries itself. Creates the file if it does not exist. */
import { SqliteAdapter, SqliteDialect } from 'kysely';
import { openSqlite } from '../sqlite-driver.ts';
import { MILLISECONDS_TO_OPEN } from '../sqlite-file.ts';

export function sqliteDialect(file: string): SqliteDialect {
  const connection = openSqlite(file, { timeout: MILLISECONDS_TO_OPEN });
  connection.exec('PRAGMA journal_mode = WAL');
  connection.exec('PRAGMA synchronous = FULL');
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
