/** A ledger in a file: the embedded default. Durable (WAL, synchronous full), and alone with its file while it writes. */
import { existsSync, statSync } from 'node:fs';
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
import { inTime, type Wait } from '../deadline.ts';
import { LedgerContentError, LedgerUnavailableError } from '../errors.ts';
import { type Database, type Snapshot, Undone, type Work } from './database.ts';
import type { Tables } from './schema.ts';
import { filesOf, isMarked, isWhole, MILLISECONDS_TO_OPEN, mark, verifyIntegrity } from './sqlite-file.ts';

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
  readonly #file: string;
  #connection: SqliteConnection.Database;
  /** What the connection writes to. */
  #files: string;
  /** It has failed in a way that a new one may not. */
  #isSuspect = false;
  /** The file may be damaged, or another one: it is verified before it is used. */
  #isUnknown = false;
  #reopening: Promise<void> | undefined;
  whenConnected: (() => Work<void>) | undefined;
  readonly #statements = new Map<string, Statement<unknown[]>>();

  /** The file must be there. @throws LedgerUnavailableError */
  constructor(file: string) {
    if (!existsSync(file)) {
      throw new LedgerUnavailableError('the file does not exist');
    }
    this.#file = file;
    const isKnown = unavailable(() => isMarked(file));
    this.#connection = unavailable(() => openFile(file));
    this.#files = filesOf(file, this.#connection);
    if (isKnown) {
      mark(file, this.#connection);
    } else {
      this.#isSuspect = true;
      this.#isUnknown = true;
    }
  }

  transact<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait): Promise<Result> {
    return this.#alone('BEGIN IMMEDIATE', wait, () => {
      this.#verifyFiles();
      const result = this.#run(work());
      wait.throwIfOver();
      if (result instanceof Undone) {
        return result.result;
      }
      this.#statement('COMMIT').run();
      return result;
    });
  }

  read<Result>(work: () => Work<Result>, wait: Wait): Promise<Result> {
    return this.#alone('BEGIN', wait, () => this.#run(work()));
  }

  /** On a connection of its own: the other one is wanted meanwhile. */
  async snapshot<Result>(work: (snapshot: Snapshot) => Promise<Result>, wait: Wait): Promise<Result> {
    wait.throwIfOver();
    await this.#usable(wait);
    const reader = unavailable(() => new SqliteConnection(this.#file, { readonly: true, timeout: 0 }));
    reader.defaultSafeIntegers(true);
    try {
      // The moment is that of the first look.
      await whenFree(wait, () => {
        if (!reader.inTransaction) {
          reader.exec('BEGIN');
        }
        reader.exec('SELECT 1 FROM sqlite_master LIMIT 1');
      });
      return await work({ stream: (query) => each(reader, query, wait) });
    } finally {
      reader.close();
    }
  }

  async close(): Promise<void> {
    this.#connection.close();
  }

  /** All of an attempt is in one tick: no other request of this process comes in between. What it has not committed is undone. */
  async #alone<Result>(begin: string, wait: Wait, work: () => Result): Promise<Result> {
    try {
      await this.#usable(wait);
      return await whenFree(wait, () => {
        this.#statement(begin).run();
        try {
          return work();
        } finally {
          if (this.#connection.inTransaction) {
            this.#statement('ROLLBACK').run();
          }
        }
      });
    } catch (thrown) {
      const cause = thrown instanceof LedgerUnavailableError ? thrown.cause : undefined;
      if (cause instanceof SqliteConnection.SqliteError && SUSPECT.test(cause.code)) {
        this.#isSuspect = true;
        this.#isUnknown ||= DAMAGED.test(cause.code);
      }
      throw thrown;
    }
  }

  /** Opens the file anew, if that may help: it was not writable, say, or another one is in its place. */
  async #usable(wait: Wait): Promise<void> {
    while (this.#isSuspect) {
      this.#reopening ??= this.#reopen().finally(() => {
        this.#reopening = undefined;
      });
      // A large file takes its time: who can't wait for it is refused, and it is verified nevertheless.
      this.#reopening.catch(() => {});
      await inTime(this.#reopening, wait);
    }
  }

  async #reopen(): Promise<void> {
    this.#statements.clear();
    this.#connection.close();
    try {
      // Something else in its place is not even looked at: SQLite would put the log of changes into it, and delete that.
      if (!isWhole(statSync(this.#file, { throwIfNoEntry: false }))) {
        throw new LedgerUnavailableError('the file does not exist, or is no ledger');
      }
      const isKnown = isMarked(this.#file);
      if (!isKnown || this.#isUnknown) {
        await verifyIntegrity(this.#file);
      }
      this.#connection = openFile(this.#file);
      mark(this.#file, this.#connection);
      this.#files = filesOf(this.#file, this.#connection);
    } catch (thrown) {
      throw asUnavailable(thrown);
    }
    this.#isSuspect = false;
    this.#isUnknown = false;
    if (this.whenConnected !== undefined) {
      this.#run(this.whenConnected());
    }
  }

  /** SQLite goes on writing to a file that was deleted or replaced: what is recorded there nobody finds. */
  #verifyFiles(): void {
    if (filesOf(this.#file, this.#connection) !== this.#files) {
      this.#isSuspect = true;
      this.#isUnknown = true;
      throw new LedgerUnavailableError('the file was deleted, or another one is in its place');
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

/** Tries until the file is free. SQLite would wait itself, and all of the process with it. */
async function whenFree<Result>(wait: Wait, attempt: () => Result): Promise<Result> {
  for (let longest = SHORTEST_PAUSE; ; longest = Math.min(2 * longest, LONGEST_PAUSE)) {
    wait.throwIfOver();
    try {
      return attempt();
    } catch (thrown) {
      if (!isBusy(thrown)) {
        throw asUnavailable(thrown);
      }
    }
    await pause(Math.random() * longest, undefined, { signal: wait.signal }).catch(() => {
      wait.throwIfOver();
      throw new LedgerUnavailableError('the file is locked by another process');
    });
  }
}

async function* each<Row>(
  reader: SqliteConnection.Database,
  { sql, parameters }: CompiledQuery<Row>,
  wait: Wait,
): AsyncIterable<Row> {
  const rows = unavailable(() => reader.prepare<unknown[]>(sql).iterate(...parameters));
  try {
    for (;;) {
      wait.throwIfOver();
      const row = unavailable(() => rows.next());
      if (row.done === true) {
        return;
      }
      yield row.value as Row;
    }
  } finally {
    rows.return?.();
  }
}

/** With these codes the connection has failed, and not only what was asked of it. Source: SQLite docs, "Result and Error Codes". */
const SUSPECT = /^SQLITE_(READONLY|IOERR|CORRUPT|NOTADB|CANTOPEN)/;

/** With these the file itself may be damaged. */
const DAMAGED = /^SQLITE_(IOERR|CORRUPT|NOTADB)/;

function openFile(file: string): SqliteConnection.Database {
  const connection = new SqliteConnection(file, { timeout: MILLISECONDS_TO_OPEN });
  connection.defaultSafeIntegers(true);
  connection.pragma('journal_mode = WAL');
  connection.pragma('synchronous = FULL');
  connection.pragma('foreign_keys = ON');
  connection.pragma('busy_timeout = 0');
  return connection;
}

/** A number of more than 64 bits, a text of more than a gigabyte. */
const CONTENT = /^SQLITE_(TOOBIG|MISMATCH|RANGE)/;

/** With tables to make or to change: kysely runs the queries itself. Makes the file where there is none. */
export function sqliteDialect(file: string): SqliteDialect {
  const connection = new SqliteConnection(file, { timeout: MILLISECONDS_TO_OPEN });
  connection.pragma('journal_mode = WAL');
  connection.pragma('synchronous = FULL');
  return new TransactionalDialect({ database: connection });
}

/** SQLite makes tables in transactions, though kysely does without: an upgrade that is interrupted has done nothing. */
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

function isBusy(thrown: unknown): boolean {
  const code = thrown instanceof SqliteConnection.SqliteError ? thrown.code : '';
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}

function unavailable<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (thrown) {
    throw asUnavailable(thrown);
  }
}

/** What SQLite throws is the ledger's fault; all else is not, and a number that does not fit is nobody's but who asks for it. */
function asUnavailable(thrown: unknown): unknown {
  const isContent =
    thrown instanceof RangeError ||
    (thrown instanceof SqliteConnection.SqliteError && CONTENT.test(thrown.code));
  if (isContent) {
    return new LedgerContentError(thrown.message, { cause: thrown });
  }
  return thrown instanceof SqliteConnection.SqliteError
    ? new LedgerUnavailableError(thrown.message, { cause: thrown })
    : thrown;
}
