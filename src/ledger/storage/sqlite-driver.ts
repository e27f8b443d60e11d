/**
 * The SQLite driver. `node:sqlite` is used if it has the required features: since Node.js 22.16 and 24.
 * Otherwise the package better-sqlite3 is used, an optional dependency.
 */
import { constants } from 'node:buffer';
import { createRequire } from 'node:module';
import type BetterSqlite from 'better-sqlite3';
import type { SqliteStatement as KyselyStatement, SqliteDatabase } from 'kysely';
import { ConfigurationError, codeOf, errorText } from '../../base/errors.ts';

/** Parameters are texts, numbers, bigints of 64 bits, bytes and `null`; `undefined` is `null`. @throws SqliteError, RangeError */
export interface SqliteStatement extends KyselyStatement {
  readonly source: string;
}

/** @throws SqliteError */
export interface SqliteConnection extends SqliteDatabase {
  readonly inTransaction: boolean;
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  /** May be called repeatedly. */
  close(): void;
}

export interface SqliteOptions {
  readonly readonly?: boolean;
  /** How long a statement blocks the process while others lock the file, in milliseconds. Default: 5000. */
  readonly timeout?: number;
  /** Whether integers are read as bigints, and exact. Default: as numbers. */
  readonly bigints?: boolean;
}

/**
 * `code`: starts with the family of SQLite's result code, such as `SQLITE_BUSY`. Errors of better-sqlite3
 * have the same shape.
 */
export class SqliteError extends Error {
  override readonly name = 'SqliteError';
  readonly code: string;

  constructor(message: string, code: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export function isSqliteError(thrown: unknown): thrown is SqliteError {
  return codeOf(thrown).startsWith('SQLITE_');
}

const MILLISECONDS_TO_WAIT = 5000;

/** Creates a file that does not exist. @throws SqliteError, ConfigurationError */
export function openSqlite(file: string, options: SqliteOptions = {}): SqliteConnection {
  return driver().open(file, options);
}

/**
 * The module for another process: `node:sqlite` has `DatabaseSync`, better-sqlite3 is the constructor itself.
 * @throws ConfigurationError
 */
export function sqliteModule(): string {
  return driver().module;
}

interface Driver {
  readonly module: string;
  open(file: string, options: SqliteOptions): SqliteConnection;
}

let chosen: Driver | undefined;

/** Loaded with the first file: without a ledger in a file, SQLite is not needed. */
function driver(): Driver {
  chosen ??= builtInDriver() ?? packagedDriver();
  return chosen;
}

/** Missing from the types of Node.js 20. */
interface BuiltIn {
  readonly DatabaseSync: new (
    file: string,
    options?: { readOnly?: boolean; timeout?: number; defensive?: boolean },
  ) => BuiltInConnection;
}

interface BuiltInConnection {
  readonly isOpen: boolean;
  readonly isTransaction: boolean;
  exec(sql: string): void;
  prepare(sql: string): BuiltInStatement;
  close(): void;
}

interface BuiltInStatement {
  setReadBigInts(enabled: boolean): void;
  columns(): readonly unknown[];
  all(...parameters: unknown[]): unknown[];
  run(...parameters: unknown[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  iterate(...parameters: unknown[]): IterableIterator<unknown>;
}

/** `undefined` = missing or too old. */
function builtInDriver(): Driver | undefined {
  const builtIn = loadBuiltIn();
  if (builtIn === undefined) {
    return undefined;
  }
  const memory = new builtIn.DatabaseSync(':memory:');
  try {
    // The newest required feature: `columns` and the option `timeout` are as old.
    if (!('isTransaction' in memory)) {
      return undefined;
    }
    const row = memory.prepare("SELECT 'a' || char(0) || 'b' AS text").all()[0] as { text: string };
    // Node.js 22 reads a text only up to its first NUL, so none is written. PostgreSQL does not accept NUL
    // either.
    const readsNul = row.text.length === 3;
    return {
      module: 'node:sqlite',
      open: (file, options) => new Connection(builtIn, file, options, readsNul),
    };
  } finally {
    memory.close();
  }
}

/** Suppresses the experimental warning of Node.js 22, which users cannot act on. */
function loadBuiltIn(): BuiltIn | undefined {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return process.getBuiltinModule('node:sqlite') as BuiltIn | undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** @throws ConfigurationError */
function packagedDriver(): Driver {
  const require = createRequire(import.meta.url);
  try {
    const Packaged = require('better-sqlite3') as typeof BetterSqlite;
    // Loads the native addon.
    new Packaged(':memory:').close();
    return {
      module: require.resolve('better-sqlite3'),
      open: (file, { readonly = false, timeout = MILLISECONDS_TO_WAIT, bigints = false }) =>
        new Packaged(file, { readonly, timeout }).defaultSafeIntegers(bigints),
    };
  } catch (thrown) {
    const [reason] = errorText(thrown).split('\n', 1);
    throw new ConfigurationError([
      {
        severity: 'error',
        section: 'ledger',
        option: 'connection',
        message: `this Node.js (${process.version}) has no SQLite that a ledger can use, and the package better-sqlite3 cannot be loaded (${reason}): use Node.js 24 or newer, or run npm install better-sqlite3, or use PostgreSQL`,
      },
    ]);
  }
}

class Connection implements SqliteConnection {
  readonly #connection: BuiltInConnection;
  readonly #bigints: boolean;
  readonly #readsNul: boolean;

  constructor(
    { DatabaseSync }: BuiltIn,
    file: string,
    { readonly = false, timeout = MILLISECONDS_TO_WAIT, bigints = false }: SqliteOptions,
    readsNul: boolean,
  ) {
    this.#bigints = bigints;
    this.#readsNul = readsNul;
    this.#connection = translated(
      () => new DatabaseSync(file, { readOnly: readonly, timeout, defensive: true }),
    );
  }

  get inTransaction(): boolean {
    return this.#connection.isOpen && this.#connection.isTransaction;
  }

  exec(sql: string): void {
    translated(() => this.#connection.exec(sql));
  }

  prepare(sql: string): SqliteStatement {
    const statement = translated(() => this.#connection.prepare(sql));
    statement.setReadBigInts(this.#bigints);
    return new Statement(sql, statement, this.#readsNul);
  }

  close(): void {
    if (this.#connection.isOpen) {
      this.#connection.close();
    }
  }
}

class Statement implements SqliteStatement {
  readonly source: string;
  readonly reader: boolean;
  readonly #statement: BuiltInStatement;
  readonly #readsNul: boolean;

  constructor(source: string, statement: BuiltInStatement, readsNul: boolean) {
    this.source = source;
    this.reader = statement.columns().length > 0;
    this.#statement = statement;
    this.#readsNul = readsNul;
  }

  all(parameters: readonly unknown[]): unknown[] {
    return translated(() => this.#statement.all(...bindable(parameters, this.#readsNul)));
  }

  run(parameters: readonly unknown[]): { changes: number | bigint; lastInsertRowid: number | bigint } {
    return translated(() => this.#statement.run(...bindable(parameters, this.#readsNul)));
  }

  *iterate(parameters: readonly unknown[]): IterableIterator<unknown> {
    const rows = translated(() => this.#statement.iterate(...bindable(parameters, this.#readsNul)));
    try {
      for (;;) {
        const row = translated(() => rows.next());
        if (row.done === true) {
          return;
        }
        yield row.value;
      }
    } finally {
      rows.return?.();
    }
  }
}

const TOO_BIG = 'The bound string, buffer, or bigint is too big';
/** Maximum length of a string, in bytes: SQLite would accept twice as much, but not return it. */
const LONGEST_TEXT = constants.MAX_STRING_LENGTH;

/**
 * Converts parameters like better-sqlite3. @throws RangeError for a text that could not be read again
 * unchanged
 */
function bindable(parameters: readonly unknown[], readsNul: boolean): readonly unknown[] {
  let isBindable = true;
  for (const value of parameters) {
    if (value === undefined) {
      isBindable = false;
    } else if (typeof value === 'string') {
      if (3 * value.length > LONGEST_TEXT && Buffer.byteLength(value) > LONGEST_TEXT) {
        throw new RangeError(TOO_BIG);
      }
      if (!readsNul && value.includes('\0')) {
        throw new RangeError('a text has a NUL, which Node.js 22 cannot read from SQLite');
      }
    }
  }
  return isBindable ? parameters : parameters.map((value) => (value === undefined ? null : value));
}

function translated<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (thrown) {
    throw asSqliteError(thrown);
  }
}

/**
 * Converts errors of node:sqlite: SQLite's become a `SqliteError`, a bigint beyond 64 bits becomes a
 * `RangeError`.
 */
export function asSqliteError(thrown: unknown): unknown {
  if (!(thrown instanceof Error && 'code' in thrown)) {
    return thrown;
  }
  if (thrown.code === 'ERR_INVALID_ARG_VALUE') {
    return new RangeError(TOO_BIG, { cause: thrown });
  }
  return 'errcode' in thrown && typeof thrown.errcode === 'number'
    ? new SqliteError(thrown.message, familyOf(thrown.errcode), { cause: thrown })
    : thrown;
}

/** The families of result codes, by number. Source: SQLite docs, "Result and Error Codes". */
const FAMILIES =
  'OK ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL EMPTY SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB NOTICE WARNING'.split(
    ' ',
  );

/** The lowest byte of an extended code is its family. */
function familyOf(code: number): string {
  return `SQLITE_${FAMILIES[code & 0xff] ?? 'ERROR'}`;
}
