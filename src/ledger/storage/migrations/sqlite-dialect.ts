/** SQLite for migrations: kysely runs the queries. */
import { type DatabaseConnection, type Driver, SqliteAdapter, SqliteDialect, SqliteDriver } from 'kysely';
import { openSqlite, type SqliteConnection } from '../sqlite-driver.ts';
import { MILLISECONDS_TO_OPEN } from '../sqlite-file.ts';

export function sqliteDialect(file: string): SqliteDialect {
  const connection = openSqlite(file, { timeout: MILLISECONDS_TO_OPEN });
  connection.exec('PRAGMA journal_mode = WAL');
  connection.exec('PRAGMA synchronous = FULL');
  return new TransactionalDialect(connection);
}

/**
 * Creates tables in transactions, which SQLite supports and kysely does not use by default: an interrupted
 * upgrade changes nothing.
 */
class TransactionalDialect extends SqliteDialect {
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    super({ database: connection });
    this.#connection = connection;
  }

  override createAdapter(): SqliteAdapter {
    return new TransactionalAdapter();
  }

  override createDriver(): Driver {
    return new TransactionalDriver(this.#connection);
  }
}

class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class TransactionalDriver extends SqliteDriver {
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    super({ database: connection });
    this.#connection = connection;
  }

  /** After some errors, such as a full disk, SQLite has rolled back: a second time would fail and hide the error. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#connection.inTransaction) {
      await super.rollbackTransaction(connection);
    }
  }
}
