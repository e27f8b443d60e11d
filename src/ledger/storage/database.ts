/** The interface of databases for the ledger. SQLite and PostgreSQL implement it. */
import type { CompiledQuery, Kysely } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import { LedgerUnavailableError } from '../../base/errors.ts';
import type { Dialect } from './connection.ts';
import type { Tables } from './schema.ts';

/**
 * The steps of a transaction; each yields one query and receives its rows. Written once for both databases:
 * SQLite runs all steps within one tick, PostgreSQL one round trip after the other.
 */
export type Work<Result> = Generator<CompiledQuery, Result, readonly unknown[]>;

/** Runs one query: `yield* rows(query)`. */
export function* rows<Row>(query: CompiledQuery<Row>): Work<Row[]> {
  return (yield query) as Row[];
}

const NEXT = Symbol('next');
type Announcing = CompiledQuery & { [NEXT]?: readonly CompiledQuery[] };

/**
 * Announces the queries that probably follow this one, whatever its result, so that a database may send all
 * of them at once. Yield the same objects later. They must only read.
 */
export function announcing<Row>(
  query: CompiledQuery<Row> & Announcing,
  next: readonly CompiledQuery[],
): CompiledQuery<Row> {
  query[NEXT] = next;
  return query;
}

export function announcedWith(query: Announcing): readonly CompiledQuery[] {
  return query[NEXT] ?? [];
}

/** Return this from a `Work` to roll back everything that it has written. */
export class Undone<Result> {
  readonly result: Result;

  constructor(result: Result) {
    this.result = result;
  }
}

export interface Database {
  readonly dialect: Dialect;
  /** Builds queries; never runs one. */
  readonly queries: Kysely<Tables>;
  /**
   * Runs first on every new connection; if it throws, the caller that wanted the connection gets the error.
   */
  set whenConnected(work: (() => Work<void>) | undefined);
  /** Creates the memory of a transaction with several parts. */
  set memory(make: (() => Memory) | undefined);
  /**
   * All or nothing. `project`: the only project that the work locks. Transactions of one project share a few
   * connections, so that other projects never wait for them.
   */
  transact<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait, project?: string): Promise<Result>;
  /** Read-only, and concurrent with everything else. All queries see the same snapshot. */
  read<Result>(work: () => Work<Result>, wait: Wait): Promise<Result>;
  /**
   * Reads more than fits into memory at once, concurrent with everything else. All queries see the same
   * snapshot, however long reading takes. Only the wait limits its duration.
   */
  snapshot<Result>(work: (snapshot: Snapshot) => Promise<Result>, wait: Wait): Promise<Result>;
  /** Verifies all that is stored, while it is used; does nothing for a server. Once damage is found, all is refused. */
  verifyStored?(): void;
  close(): Promise<void>;
}

export interface Snapshot {
  /** The rows of one query. Read one stream at a time: finish or leave one before you start the next. */
  stream<Row>(query: CompiledQuery<Row>): AsyncIterable<Row>;
}

/**
 * Rows that the parts of a transaction have read. It is valid only during the transaction: until its end, no
 * other transaction may change what it remembers.
 */
export interface Memory {
  /**
   * `queries`: the expected queries of the parts. Returns the queries to send at once, so that each is
   * remembered; may be empty.
   */
  gather(queries: readonly CompiledQuery[]): readonly CompiledQuery[];
  /** The result that the database would return; `undefined` = query the database. */
  recall(query: CompiledQuery): readonly unknown[] | undefined;
  /** The database has run the query. */
  note(query: CompiledQuery, answer: readonly unknown[]): void;
  /** Writes since a savepoint were rolled back. */
  forget(): void;
}

/** The database did not confirm a commit: the transaction may or may not be recorded. */
export class CommitInDoubtError extends LedgerUnavailableError {
  /** The result that the transaction would have returned. */
  readonly result: unknown;

  constructor(message: string, result: unknown, options: ErrorOptions) {
    super(message, options);
    this.result = result;
  }
}
