/** The versions of the tables: known and applied migrations, and applying the rest. Loads slowly, with kysely's migrator. */

import {
  type DatabaseConnection,
  Kysely,
  type Dialect as KyselyDialect,
  type Migration,
  type MigrationProvider,
  type MigrationResultSet,
  Migrator,
  SqliteAdapter,
  SqliteDriver,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely';
import { waitFor } from '../../../base/deadline.ts';
import { ConfigurationError, errorText, LedgerUnavailableError } from '../../../base/errors.ts';
import { type Connection, type Dialect, describeConnection } from '../connection.ts';
import { type Database, rows } from '../database.ts';
import { missingRights } from '../rights.ts';
import { openSqlite, type SqliteConnection } from '../sqlite-driver.ts';
import { asUnavailable, MILLISECONDS_TO_OPEN } from '../sqlite-file.ts';
import { migrations, OPTIONAL } from './versions.ts';

type Concurrent = typeof import('./concurrent-indexes.ts');

type SchemaState =
  | { readonly kind: 'current' }
  | { readonly kind: 'missing' | 'older' | 'newer'; readonly message: string };

/** Compares the tables with this version. `optional`: may be missing. @throws LedgerUnavailableError */
export async function schemaState(
  database: Database,
  connection: Connection,
  optional: readonly string[] = OPTIONAL,
): Promise<SchemaState> {
  const known = Object.keys(migrations(connection.dialect));
  const applied = await appliedMigrations(database, connection.dialect);
  const place = describeConnection(connection);
  if (applied.length === 0) {
    return {
      kind: 'missing',
      message: `${place} holds no ledger: blazar-enforcement ledger upgrade makes one`,
    };
  }
  const unknown = applied.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    return {
      kind: 'newer',
      message: `the ledger in ${place} was made by a newer version of this program (${unknown.join(', ')})`,
    };
  }
  return known.some((name) => !applied.includes(name) && !optional.includes(name))
    ? {
        kind: 'older',
        message: `the ledger in ${place} was made by an older version of this program: blazar-enforcement ledger upgrade brings it up to date`,
      }
    : { kind: 'current' };
}

const TABLE = 'kysely_migration';

/** Without kysely's migrator, which would create its tables. */
async function appliedMigrations(database: Database, dialect: Dialect): Promise<string[]> {
  const queries = database.queries as unknown as Kysely<{
    kysely_migration: { name: string };
    sqlite_master: { name: string };
  }>;
  const wait = waitFor(undefined);
  // Only in the search path: other schemas may contain migrations of other programs.
  const table =
    dialect === 'sqlite'
      ? queries.selectFrom('sqlite_master').select('name').where('name', '=', TABLE).compile()
      : sql<{
          name: string;
        }>`select 1 from (select to_regclass(${TABLE}) as found) as it where found is not null`.compile(
          queries,
        );
  const found = await database.read(() => rows(table), wait);
  if (found.length === 0) {
    return [];
  }
  const applied = queries.selectFrom(TABLE).select('name').orderBy('name').compile();
  return (await database.read(() => rows(applied), wait)).map(({ name }) => name);
}

/** The PostgreSQL schema of this ledger's migrations. The migrator would accept migrations in any schema. */
async function schemaOf(database: Kysely<unknown>): Promise<string> {
  const query = sql<{ schema: string | null }>`select coalesce(
    (select nspname::text from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where pg_class.oid = to_regclass(${TABLE})), current_schema()::text) as schema`;
  const [row] = (await query.execute(database)).rows;
  if (row?.schema == null) {
    throw new Error('none of the schemas in search_path exists, or this role may not use them');
  }
  return row.schema;
}

/** An encoding without some characters would refuse leases for their names. SQL_ASCII stores any text as it is. */
const ENCODINGS: readonly string[] = ['UTF8', 'SQL_ASCII'];

/** A ledger that is there already is upgraded in any encoding. @throws ConfigurationError */
async function requireEncoding(database: Kysely<unknown>): Promise<void> {
  const query = sql<{ encoding: string }>`
    select current_setting('server_encoding') as encoding where to_regclass(${TABLE}) is null`;
  const [row] = (await query.execute(database)).rows;
  if (row !== undefined && !ENCODINGS.includes(row.encoding)) {
    const message = `the database has the encoding ${row.encoding}, which cannot store every text: create it with ENCODING 'UTF8'`;
    throw new ConfigurationError([{ severity: 'error', section: 'ledger', option: 'connection', message }]);
  }
}

async function migrateServer(
  database: Kysely<unknown>,
  { alone, buildIndexesConcurrently, withLockTimeouts, retryOnLockTimeout }: Concurrent,
): Promise<MigrationResultSet> {
  await requireEncoding(database);
  return alone(database, async (stillAlone) => {
    await buildIndexesConcurrently(database, stillAlone);
    const migrator = new Migrator({
      db: database,
      provider: providerOf(withLockTimeouts(migrations('postgresql'), stillAlone)),
      migrationTableSchema: await schemaOf(database),
    });
    const result = await retryOnLockTimeout(() => migrator.migrateToLatest());
    if (result.error !== undefined) {
      throw result.error;
    }
    return result;
  });
}

function providerOf(known: Record<string, Migration>): MigrationProvider {
  return { getMigrations: async () => known };
}

/**
 * Creates or upgrades the tables. Returns the applied migrations. Does not change a newer database.
 * @throws LedgerUnavailableError, ConfigurationError
 */
export async function upgradeTables(connection: Connection): Promise<string[]> {
  let database: Kysely<unknown> | undefined;
  try {
    let migrated: Promise<MigrationResultSet>;
    if (connection.dialect === 'sqlite') {
      database = new Kysely({ dialect: sqliteDialect(connection.file) });
      const provider = providerOf(migrations('sqlite'));
      migrated = new Migrator({ db: database, provider }).migrateToLatest();
    } else {
      const concurrent = await import('./concurrent-indexes.ts');
      const server = concurrent.serverAt(connection.url);
      database = new Kysely({ dialect: server.dialect });
      migrated = server.whileAlive(migrateServer(database, concurrent));
    }
    const { error, results = [] } = await migrated;
    if (error !== undefined) {
      throw error;
    }
    return results.map(({ migrationName }) => migrationName);
  } catch (thrown) {
    if (thrown instanceof ConfigurationError) {
      throw thrown;
    }
    const explained = connection.dialect === 'sqlite' ? asUnavailable(thrown, connection.file) : thrown;
    throw explained instanceof LedgerUnavailableError
      ? explained
      : new LedgerUnavailableError(errorText(thrown), { cause: thrown });
  } finally {
    await database?.destroy();
  }
}

/**
 * What is wrong with the tables or their privileges; `undefined` = nothing. `migration`: the one that creates
 * them, if it is optional; other optional ones may still be missing. @throws LedgerUnavailableError
 */
export async function tableMistake(
  database: Database,
  connection: Connection,
  needed: Readonly<Record<string, readonly string[]>>,
  migration?: string,
): Promise<string | undefined> {
  const state = await schemaState(
    database,
    connection,
    OPTIONAL.filter((one) => one !== migration),
  );
  if (state.kind !== 'current') {
    return state.message;
  }
  const missing = database.dialect === 'postgresql' ? await missingRights(database, needed) : undefined;
  return missing && `${describeConnection(connection)}: ${missing}`;
}

/** kysely runs the queries, in transactions also those that create tables: an interrupted upgrade changes nothing. */
export function sqliteDialect(file: string): KyselyDialect {
  const connection = openSqlite(file, { timeout: MILLISECONDS_TO_OPEN });
  connection.exec('PRAGMA journal_mode = WAL');
  connection.exec('PRAGMA synchronous = FULL');
  return {
    createAdapter: () => new TransactionalAdapter(),
    createDriver: () => new TransactionalDriver(connection),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (database) => new SqliteIntrospector(database),
  };
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
