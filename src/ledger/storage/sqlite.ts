/** A ledger in a file: the embedded default. Durable (WAL, synchronous = FULL), with one writer at a time. */
import { accessSync, constants, statSync } from 'node:fs';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { type CompiledQuery, Kysely, SqliteDialect } from 'kysely';
import { inTime, type Wait } from '../../base/deadline.ts';
import { errorText, LedgerUnavailableError } from '../../base/errors.ts';
import { timedYield } from '../../base/yield-to-event-loop.ts';
import { CommitGroups, type GroupWork } from './commit-group.ts';
import {
  CommitInDoubtError,
  type Database,
  type Memory,
  type Snapshot,
  Undone,
  type Work,
} from './database.ts';
import type { GroupBounds } from './group-parts.ts';
import type { Tables } from './schema.ts';
import { openSqlite, type SqliteConnection, type SqliteStatement } from './sqlite-driver.ts';
import {
  asUnavailable,
  type Files,
  filesOf,
  isBusy,
  isDiskFault,
  isInDoubt,
  isMarked,
  isWhole,
  MILLISECONDS_TO_OPEN,
  mark,
  ownError,
  realPathOf,
  suspicionOf,
  unavailable,
  verifyIntegrity,
  verifyName,
  verifyStructure,
  whenFree,
} from './sqlite-file.ts';

/**
 * When a commit is durable. `full`: before its response. `normal`: a power failure may undo the latest
 * commits, always as a whole; a crash of the process undoes none.
 */
type Durability = 'full' | 'normal';

const MILLISECONDS_TO_VERIFICATION = 1000;
/** In bytes: the structure of so many is verified in about ten milliseconds. */
const VERIFIED_AT_ONCE = 8 * 1024 * 1024;

export class SqliteDatabase implements Database {
  readonly dialect = 'sqlite';
  readonly queries = new Kysely<Tables>({
    // It compiles queries, and never opens a file.
    dialect: new SqliteDialect({ database: () => Promise.reject(new Error('it only compiles queries')) }),
  });
  readonly #file: string;
  readonly #durability: Durability;
  /** `undefined` = it could not be opened yet. */
  #open: SqliteConnection | undefined;
  #realPath = '';
  /** The files that the connection writes to. */
  #files: Files | undefined;
  /** The connection failed, and a new one may work. */
  #isSuspect = false;
  /** The file may be damaged or replaced: verify it before use. */
  #isUnknown = false;
  #reopening: Promise<void> | undefined;
  #verification: Promise<void> | undefined;
  readonly #closing = new AbortController();
  whenConnected: (() => Work<void>) | undefined;
  memory: (() => Memory) | undefined;
  readonly #statements = new Map<string, SqliteStatement>();
  readonly #groups: CommitGroups;

  /** The file must exist. `bounds`: limits of a group. @throws LedgerUnavailableError */
  constructor(file: string, durability: Durability = 'full', bounds?: GroupBounds) {
    try {
      accessSync(file, constants.R_OK);
    } catch (thrown) {
      throw new LedgerUnavailableError(
        (thrown as NodeJS.ErrnoException).code === 'ENOENT'
          ? 'the file does not exist; blazar-enforcement ledger upgrade creates a ledger'
          : 'permission denied; run the command as the user that the ledger belongs to',
      );
    }
    verifyName(file);
    this.#file = file;
    this.#durability = durability;
    this.#groups = new CommitGroups({
      commit: (work, wait, undone) => this.#transact(work, wait, undone),
      ownError,
      memory: () => this.memory?.(),
      bounds,
    });
    try {
      this.#isUnknown = !isMarked(file);
      this.#opened(openFile(file, durability));
    } catch (thrown) {
      // With a disk that is full, it starts as with a server that does not answer: callers are refused.
      if (!isDiskFault(thrown, file)) {
        throw asUnavailable(thrown, file);
      }
      this.#isUnknown = true;
    }
    this.#isSuspect = this.#isUnknown;
    if (!this.#isUnknown) {
      mark(file, this.#connection);
    }
  }

  get #connection(): SqliteConnection {
    if (this.#open === undefined) {
      throw new LedgerUnavailableError('the file is not open');
    }
    return this.#open;
  }

  #opened(connection: SqliteConnection): void {
    this.#open = connection;
    this.#realPath = realPathOf(this.#file);
    this.#files = filesOf(this.#file, this.#realPath, connection);
  }

  /** Groups all concurrent transactions, whatever their projects: the file has one writer. */
  transact<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait): Promise<Result> {
    return this.#groups.join(work, wait);
  }

  #transact(work: GroupWork, wait: Wait, undone: () => void): Promise<unknown> {
    return this.#alone('BEGIN IMMEDIATE', wait, () => {
      this.#verifyFiles();
      const result = this.#run(work());
      wait.throwIfOver();
      if (result instanceof Undone) {
        return result.result;
      }
      this.#commit(result, undone);
      return result;
    });
  }

  #commit(result: unknown, undone: () => void): void {
    try {
      this.#statement('COMMIT').run([]);
    } catch (thrown) {
      if (isBusy(thrown)) {
        // Rolls back, and starts again when the file is free.
        this.#statement('ROLLBACK').run([]);
        undone();
      }
      throw isInDoubt(thrown)
        ? new CommitInDoubtError(errorText(asUnavailable(thrown, this.#file)), result, { cause: thrown })
        : thrown;
    }
  }

  read<Result>(work: () => Work<Result>, wait: Wait): Promise<Result> {
    return this.#alone('BEGIN', wait, () => this.#run(work()));
  }

  /** On a separate connection: others use the main one in the meantime. */
  async snapshot<Result>(work: (snapshot: Snapshot) => Promise<Result>, wait: Wait): Promise<Result> {
    wait.throwIfOver();
    await this.#usable(wait);
    // Also between two snapshots: transactions wait for the next turn of the event loop.
    await nextTurn();
    const reader = unavailable(this.#file, () =>
      openSqlite(this.#file, { readonly: true, timeout: 0, bigints: true }),
    );
    try {
      // The snapshot starts with the first read, not with BEGIN.
      await whenFree(this.#file, wait, () => {
        if (!reader.inTransaction) {
          reader.exec('BEGIN');
        }
        reader.exec('SELECT 1 FROM sqlite_master LIMIT 1');
      });
      return await work({ stream: (query) => each(this.#file, reader, query, wait) });
    } finally {
      reader.close();
    }
  }

  verifyStored(): void {
    this.#verification ??= this.#verifyStored();
  }

  async #verifyStored(): Promise<void> {
    const { signal } = this.#closing;
    try {
      if (statSync(this.#file).size <= VERIFIED_AT_ONCE) {
        verifyStructure(this.#file, this.#connection);
      }
      // What starts and ends within that time need not start another process.
      await pause(MILLISECONDS_TO_VERIFICATION, undefined, { signal, ref: false });
      await verifyIntegrity(this.#file, signal);
    } catch (thrown) {
      const isDamaged = thrown instanceof LedgerUnavailableError;
      this.#isSuspect ||= isDamaged;
      this.#isUnknown ||= isDamaged;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([this.#verification, this.#reopening]);
    this.#open?.close();
  }

  /**
   * An attempt runs within one tick: no other request of this process interleaves. Uncommitted changes are
   * rolled back.
   */
  async #alone<Result>(begin: string, wait: Wait, work: () => Result): Promise<Result> {
    try {
      await this.#usable(wait);
      return await whenFree(this.#file, wait, () => {
        this.#statement(begin).run([]);
        try {
          return work();
        } finally {
          if (this.#connection.inTransaction) {
            this.#statement('ROLLBACK').run([]);
          }
        }
      });
    } catch (thrown) {
      const { isSuspect, mayBeDamaged } = suspicionOf(thrown);
      this.#isSuspect ||= isSuspect;
      this.#isUnknown ||= mayBeDamaged;
      throw thrown;
    }
  }

  /** Reopens the file if that may help: for example, it was not writable, or was replaced. */
  async #usable(wait: Wait): Promise<void> {
    while (this.#isSuspect) {
      this.#reopening ??= this.#reopen().finally(() => {
        this.#reopening = undefined;
      });
      // Verifying a large file takes a while: callers whose wait ends are refused, and it continues.
      this.#reopening.catch(() => {});
      await inTime(this.#reopening, wait);
    }
  }

  async #reopen(): Promise<void> {
    this.#statements.clear();
    this.#open?.close();
    try {
      // Do not even open another file in its place: SQLite would apply the write-ahead log to it, and delete
      // the log.
      if (!isWhole(statSync(this.#file, { throwIfNoEntry: false }))) {
        throw new LedgerUnavailableError('the file does not exist, or is not a ledger');
      }
      verifyName(this.#file);
      const isKnown = isMarked(this.#file);
      if (!isKnown || this.#isUnknown) {
        await verifyIntegrity(this.#file, this.#closing.signal);
      }
      const connection = openFile(this.#file, this.#durability);
      mark(this.#file, connection);
      this.#opened(connection);
    } catch (thrown) {
      throw asUnavailable(thrown, this.#file);
    }
    this.#isSuspect = false;
    this.#isUnknown = false;
    if (this.whenConnected !== undefined) {
      this.#run(this.whenConnected());
    }
  }

  /** SQLite keeps writing to a deleted or replaced file: such records would be lost. */
  #verifyFiles(): void {
    const files = filesOf(this.#file, this.#realPath, this.#connection);
    if (files.identity !== this.#files?.identity || files.size < this.#files.size) {
      this.#isSuspect = true;
      this.#isUnknown = true;
      throw new LedgerUnavailableError('the file was deleted, replaced or overwritten');
    }
    if (files.index !== this.#files.index) {
      // Processes with different indexes overwrite each other's changes. Opening the file again does not help: the
      // connections of a process share the index.
      throw new LedgerUnavailableError(
        `${this.#realPath}-shm was deleted or replaced: stop all services on this ledger, and start them again`,
      );
    }
    this.#files = files;
  }

  /** Errors of a query are thrown into the work, which may continue. */
  #run<Result>(work: Work<Result>): Result {
    let step = work.next([]);
    while (!step.done) {
      let rows: readonly unknown[];
      try {
        rows = this.#query(step.value);
      } catch (thrown) {
        step = work.throw(thrown);
        continue;
      }
      step = work.next(rows);
    }
    return step.value;
  }

  #query({ sql, parameters }: CompiledQuery): readonly unknown[] {
    const statement = this.#statement(sql);
    if (statement.reader) {
      return statement.all(parameters);
    }
    statement.run(parameters);
    return [];
  }

  #statement(sql: string): SqliteStatement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#connection.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

async function* each<Row>(
  file: string,
  reader: SqliteConnection,
  { sql, parameters }: CompiledQuery<Row>,
  wait: Wait,
): AsyncIterable<Row> {
  const rows = unavailable(file, () => reader.prepare(sql).iterate(parameters));
  const yieldIfDue = timedYield();
  try {
    for (;;) {
      wait.throwIfOver();
      // Awaiting `undefined` for each row would take longer than the row.
      const turn = yieldIfDue();
      if (turn !== undefined) {
        await turn;
      }
      const row = unavailable(file, () => rows.next());
      if (row.done === true) {
        return;
      }
      yield row.value as Row;
    }
  } finally {
    rows.return?.();
  }
}

function openFile(file: string, durability: Durability): SqliteConnection {
  const connection = openSqlite(file, { timeout: MILLISECONDS_TO_OPEN, bigints: true });
  try {
    connection.exec('PRAGMA journal_mode = WAL');
    connection.exec(`PRAGMA synchronous = ${durability}`);
    connection.exec('PRAGMA foreign_keys = ON');
    connection.exec('PRAGMA busy_timeout = 0');
    // In KiB. The default of better-sqlite3; Node.js has 2000.
    connection.exec('PRAGMA cache_size = -16000');
    // For data of savepoints: files are slower, and fail if there is no space.
    connection.exec('PRAGMA temp_store = MEMORY');
  } catch (thrown) {
    connection.close();
    throw thrown;
  }
  return connection;
}
