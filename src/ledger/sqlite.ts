/** A ledger in a file: the embedded default. Durable (WAL, synchronous full), and alone with its file while it writes. */
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import SqliteConnection, { type Statement } from 'better-sqlite3';
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  SqliteAdapter,
  SqliteDialect,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { Wait } from '../deadline.ts';
import { type Database, LedgerUnavailableError, Undone, type Work } from './database.ts';
import type { Tables } from './schema.ts';

/** Between two attempts to get at a file that another process writes to, in milliseconds. */
const SHORTEST_PAUSE = 1;
const LONGEST_PAUSE = 20;

export class SqliteDatabase implements Database {
  readonly queries = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (database) => new SqliteIntrospector(database),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  });
  readonly #connection: SqliteConnection.Database;
  readonly #statements = new Map<string, Statement<unknown[]>>();

  /** The file must be there. @throws LedgerUnavailableError */
  constructor(file: string) {
    if (!existsSync(file)) {
      throw new LedgerUnavailableError('the file does not exist');
    }
    this.#connection = unavailable(() => openFile(file));
  }

  transact<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait): Promise<Result> {
    return this.#alone('BEGIN IMMEDIATE', wait, () => {
      const result = this.#run(work());
      wait.throwIfOver();
      if (result instanceof Undone) {
        this.#connection.exec('ROLLBACK');
        return result.result;
      }
      this.#connection.exec('COMMIT');
      return result;
    });
  }

  read<Result>(work: () => Work<Result>, wait: Wait): Promise<Result> {
    return this.#alone('BEGIN', wait, () => {
      const result = this.#run(work());
      this.#connection.exec('ROLLBACK');
      return result;
    });
  }

  async *stream<Row>(query: CompiledQuery<Row>): AsyncIterable<Row> {
    const rows = unavailable(() => this.#statement(query.sql).iterate(...query.parameters));
    for (const row of rows) {
      yield row as Row;
    }
  }

  async close(): Promise<void> {
    this.#connection.close();
  }

  /**
   * Tries until the file is free. SQLite would wait itself, and all of the process with it. Between the beginning of a
   * transaction and its end nothing is waited for: no other request of this process comes in between.
   */
  async #alone<Result>(begin: string, wait: Wait, work: () => Result): Promise<Result> {
    for (let longest = SHORTEST_PAUSE; ; longest = Math.min(2 * longest, LONGEST_PAUSE)) {
      wait.throwIfOver();
      if (this.#begins(begin)) {
        return unavailable(() => this.#finish(work));
      }
      await pause(Math.random() * longest, undefined, { signal: wait.signal }).catch(() => {
        wait.throwIfOver();
        throw new LedgerUnavailableError('the file is locked by another process');
      });
    }
  }

  /** Whether the file was free. */
  #begins(statement: string): boolean {
    return unavailable(() => {
      try {
        this.#connection.exec(statement);
        return true;
      } catch (thrown) {
        if (isBusy(thrown)) {
          return false;
        }
        throw thrown;
      }
    });
  }

  #finish<Result>(work: () => Result): Result {
    try {
      return work();
    } finally {
      if (this.#connection.inTransaction) {
        this.#connection.exec('ROLLBACK');
      }
    }
  }

  #run<Result>(work: Work<Result>): Result {
    let step = work.next([]);
    while (!step.done) {
      const { sql, parameters } = step.value;
      const statement = this.#statement(sql);
      const rows = statement.reader ? statement.all(...parameters) : [];
      if (!statement.reader) {
        statement.run(...parameters);
      }
      step = work.next(rows);
    }
    return step.value;
  }

  #statement(sql: string): Statement<unknown[]> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#connection.prepare<unknown[]>(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

function openFile(file: string): SqliteConnection.Database {
  const connection = new SqliteConnection(file, { timeout: 0 });
  connection.defaultSafeIntegers(true);
  connection.pragma('journal_mode = WAL');
  connection.pragma('synchronous = FULL');
  connection.pragma('foreign_keys = ON');
  return connection;
}

/** With tables to make or to change: kysely runs the queries itself. Makes the file where there is none. */
export function sqliteDialect(file: string): SqliteDialect {
  const connection = new SqliteConnection(file, { timeout: 5000 });
  connection.pragma('journal_mode = WAL');
  connection.pragma('synchronous = FULL');
  return new SqliteDialect({ database: connection });
}

function isBusy(thrown: unknown): boolean {
  const code = thrown instanceof SqliteConnection.SqliteError ? thrown.code : '';
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}

/** What SQLite throws is the ledger's fault; all else is not. */
function unavailable<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (thrown) {
    if (thrown instanceof SqliteConnection.SqliteError) {
      throw new LedgerUnavailableError(textOf(thrown), { cause: thrown });
    }
    throw thrown;
  }
}

function textOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
