/** From `[ledger]` to a ledger that can be asked. Loaded when the first filter wants it: databases take a while to load. */
import { ConfigurationError, errorText, LedgerUnavailableError } from '../errors.ts';
import { type Connection, describeConnection, EXPECTED_CONNECTION, parseConnection } from './connection.ts';
import type { Database } from './database.ts';
import { Ledger, type LedgerParts } from './ledger.ts';
import { schemaState } from './migrations/index.ts';
import type { LedgerOptions, LedgerSettings } from './options.ts';
import { PostgresDatabase } from './postgres.ts';
import { missingRights } from './rights.ts';
import { SqliteDatabase } from './sqlite.ts';

/** The server says that it knows no such user or database, or that the user lacks a right. Source: PostgreSQL docs, "Error Codes". */
const NOT_LET_IN = /^(28|3D|42501)/;

/** A ledger, and whether its tables are known to be those of this program. */
export interface Opened {
  readonly ledger: Ledger;
  readonly isVerified: boolean;
  /**
   * Throws `ConfigurationError` for tables that this program can't use, and `LedgerUnavailableError`. `write`: whoever asks is to
   * record leases, and needs all rights to; by default it may only look.
   */
  verify(use?: 'read' | 'write'): Promise<void>;
}

/** Throws `ConfigurationError` for a file that is not there. PostgreSQL is asked for when something is asked of it. */
export function openLedger(
  options: LedgerSettings,
  parts: Omit<LedgerParts, 'timeout' | 'doubtFolder'>,
): Opened {
  const connection = connectionOf(options);
  const database = openDatabase(connection, options);
  let isVerified = false;
  return {
    ledger: new Ledger(database, { ...parts, timeout: options.timeout, doubtFolder: options.doubt_folder }),
    get isVerified() {
      return isVerified;
    },
    async verify(use = 'read') {
      const started = performance.now();
      const failed = async (thrown: unknown) => {
        const mistake = mistakeIn(connection, await withRights(database, connection, thrown));
        if (mistake instanceof LedgerUnavailableError) {
          // Nothing else is asked of it meanwhile, and who looks at the metrics must see it.
          parts.observer?.transacted('read', 'failed', (performance.now() - started) / 1000);
        }
        throw mistake;
      };
      const state = await schemaState(database, connection).catch(failed);
      const missing =
        connection.dialect === 'postgresql' && (use === 'write' || state.kind === 'missing')
          ? await missingRights(database).catch(failed)
          : undefined;
      if (missing !== undefined) {
        throw misconfigured(`${describeConnection(connection)}: ${missing}`);
      }
      if (state.kind !== 'current') {
        throw misconfigured(state.message);
      }
      isVerified = true;
    },
  };
}

/** @throws ConfigurationError */
export function connectionOf({ connection }: Pick<LedgerOptions, 'connection'>): Connection {
  const parsed = parseConnection(connection);
  if (parsed === undefined) {
    throw misconfigured(`expected ${EXPECTED_CONNECTION}`);
  }
  return parsed;
}

function openDatabase(connection: Connection, { pool_size: poolSize, timeout }: LedgerSettings): Database {
  if (connection.dialect === 'postgresql') {
    try {
      return new PostgresDatabase(connection.url, { poolSize, timeout });
    } catch (thrown) {
      throw misconfigured(errorText(thrown));
    }
  }
  try {
    return new SqliteDatabase(connection.file);
  } catch (thrown) {
    if (thrown instanceof LedgerUnavailableError) {
      throw misconfigured(
        `${connection.file} can not be opened (${thrown.message}); blazar-enforcement ledger upgrade makes a ledger`,
      );
    }
    throw thrown;
  }
}

/** A right that is missing is named: the server says of a table alone that it was refused. */
async function withRights(database: Database, connection: Connection, thrown: unknown): Promise<unknown> {
  if (connection.dialect !== 'postgresql' || codeOf(thrown) !== '42501') {
    return thrown;
  }
  const missing = await missingRights(database).catch(() => undefined);
  return missing === undefined
    ? thrown
    : new LedgerUnavailableError(missing, { cause: (thrown as LedgerUnavailableError).cause });
}

/** What a database has thrown; that it lets nobody in is a mistake of the configuration: a `ConfigurationError`. */
export function mistakeIn(connection: Connection, thrown: unknown): unknown {
  return isNotLetIn(thrown)
    ? misconfigured(`${describeConnection(connection)}: ${errorText(thrown)}`)
    : thrown;
}

function isNotLetIn(thrown: unknown): boolean {
  return NOT_LET_IN.test(codeOf(thrown));
}

function codeOf(thrown: unknown): string {
  const cause = thrown instanceof LedgerUnavailableError ? thrown.cause : undefined;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : '';
}

export function misconfigured(message: string): ConfigurationError {
  return new ConfigurationError([{ severity: 'error', section: 'ledger', option: 'connection', message }]);
}
