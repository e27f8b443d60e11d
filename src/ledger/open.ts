/** Opens the ledger configured in `[ledger]`, and makes or upgrades its tables. Imported lazily, since the database drivers load slowly. */

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { sql } from 'kysely';
import { createFile } from '../base/create-file.ts';
import { inTime, type Wait } from '../base/deadline.ts';
import { ConfigurationError, codeOf, errorText, LedgerUnavailableError } from '../base/errors.ts';
import { systemErrorText } from '../config/read-file.ts';
import { SYSTEM_CLOCK } from '../filter/services.ts';
import { Ledger, type LedgerParts } from './ledger.ts';
import type { LedgerOptions, LedgerSettings } from './options.ts';
import {
  type Connection,
  describeConnection,
  EXPECTED_CONNECTION,
  parseConnection,
} from './storage/connection.ts';
import { type Database, rows } from './storage/database.ts';
import { schemaState, upgradeTables } from './storage/migrations/index.ts';
import { PostgresDatabase } from './storage/postgres/postgres.ts';
import { missingRights } from './storage/rights.ts';
import { SqliteDatabase } from './storage/sqlite.ts';

/**
 * The user or the database is unknown, a privilege is missing, or one of the `options` is refused. Source:
 * PostgreSQL docs, "Error Codes".
 */
const MISTAKE = /^(22|25001|28|3D|42501|42704|55P02)/;

/** An open ledger, perhaps with unverified tables. */
export interface Opened {
  readonly ledger: Ledger;
  readonly isVerified: boolean;
  /**
   * Throws `ConfigurationError` if tables are missing or of another version, and `LedgerUnavailableError`.
   * `write` also checks the privileges for recording leases.
   */
  verify(use?: 'read' | 'write'): Promise<void>;
}

/** Throws `ConfigurationError` if the file does not exist. Connects to PostgreSQL with the first query. */
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
          // No other transaction runs before verification, so the metrics must show the failure here.
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

/** @throws ConfigurationError */
export function openDatabase(
  connection: Connection,
  { pool_size: poolSize, timeout }: Pick<LedgerSettings, 'pool_size' | 'timeout'>,
): Database {
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
      throw misconfigured(`${connection.file} cannot be opened: ${thrown.message}`);
    }
    throw thrown;
  }
}

/** Names the missing privilege: the message of the server names only a table. */
async function withRights(database: Database, connection: Connection, thrown: unknown): Promise<unknown> {
  if (connection.dialect !== 'postgresql' || causeCode(thrown) !== '42501') {
    return thrown;
  }
  const missing = await missingRights(database).catch(() => undefined);
  return missing === undefined
    ? thrown
    : new LedgerUnavailableError(missing, { cause: (thrown as LedgerUnavailableError).cause });
}

/** Turns a refused login, database or setting into a `ConfigurationError`; returns any other error as it is. */
function mistakeIn(connection: Connection, thrown: unknown): unknown {
  return MISTAKE.test(causeCode(thrown))
    ? misconfigured(`${describeConnection(connection)}: ${errorText(thrown)}`)
    : thrown;
}

function causeCode(thrown: unknown): string {
  return codeOf(thrown instanceof LedgerUnavailableError ? thrown.cause : undefined);
}

function misconfigured(message: string): ConfigurationError {
  return new ConfigurationError([{ severity: 'error', section: 'ledger', option: 'connection', message }]);
}

export interface OptionalTables {
  /** The migration that creates them. */
  readonly migration: string;
  /** As in `rights.ts`. */
  readonly needed: Readonly<Record<string, readonly string[]>>;
}

/** Tables that were checked: the result stays valid. */
const usable = new WeakMap<Ledger, Set<string>>();

/** Resolves if the tables exist and are accessible. @throws LedgerUnavailableError, ConfigurationError */
export async function requireTables(
  ledger: Ledger,
  { migration, needed }: OptionalTables,
  wait: Wait,
): Promise<void> {
  const known = usable.get(ledger) ?? new Set();
  if (known.has(migration)) {
    return;
  }
  const { database } = ledger;
  const applied = sql`select 1 from kysely_migration where name = ${migration}`;
  const found = await ledger.read('read', () => rows(applied.compile(database.queries)), wait);
  if (found.length === 0) {
    throw misconfigured(
      `it lacks ${Object.keys(needed).join(', ')}: blazar-enforcement ledger upgrade makes them`,
    );
  }
  const looking = database.dialect === 'postgresql' ? missingRights(database, needed) : undefined;
  // Not awaited any more once the wait is over.
  looking?.catch(() => {});
  const missing = looking && (await inTime(looking, wait));
  if (missing !== undefined) {
    throw misconfigured(missing);
  }
  usable.set(ledger, known.add(migration));
}

/**
 * Creates or upgrades the tables. Needs no filters, and no existing ledger. Resolves to the names of the applied migrations; empty = up to date. Creates the file of a SQLite ledger.
 * Throws `ConfigurationError` for tables of a newer version, which are not changed, and for an unusable
 * location. @throws LedgerUnavailableError
 */
export async function upgradeLedger(settings: LedgerSettings): Promise<string[]> {
  const connection = connectionOf(settings);
  if (connection.dialect === 'sqlite' && !existsSync(connection.file)) {
    const folder = dirname(connection.file);
    if (!existsSync(folder)) {
      throw misconfigured(`the folder ${folder} does not exist`);
    }
    try {
      // SQLite would make it readable by everyone. Its other files get the mode and the owner of this one.
      createFile(connection.file);
    } catch (thrown) {
      throw misconfigured(`${connection.file} cannot be written (${systemErrorText(thrown)})`);
    }
  } else {
    await refuseNewer(connection, settings);
  }
  return upgradeTables(connection).catch((thrown: unknown) => {
    throw mistakeIn(connection, thrown);
  });
}

async function refuseNewer(connection: Connection, settings: LedgerSettings): Promise<void> {
  const { ledger } = openLedger(settings, { clock: SYSTEM_CLOCK, observer: undefined });
  try {
    const state = await schemaState(ledger.database, connection).catch((thrown: unknown) => {
      throw mistakeIn(connection, thrown);
    });
    if (state.kind === 'newer') {
      throw misconfigured(state.message);
    }
  } finally {
    await ledger.close();
  }
}
