/** What the ledger needs from a database. SQLite and PostgreSQL implement it. */
import type { CompiledQuery, Kysely } from 'kysely';
import type { Wait } from '../../base/deadline.ts';
import { LedgerUnavailableError } from '../../base/errors.ts';
import type { Dialect } from './connection.ts';
import type { Tables } from './schema.ts';

/**
 * The steps of a transaction; each yields one query and receives its rows. Written once for both databases: SQLite runs all steps
 * within one tick, PostgreSQL one round trip after the other.
 */
export type Work<Result> = Generator<CompiledQuery, Result, readonly unknown[]>;

/** Runs one query: `yield* rows(query)`. */
export function* rows<Row>(query: CompiledQuery<Row>): Work<Row[]> {
  return (yield query) as Row[];
}

const NEXT = Symbol('next');
type Announcing = CompiledQuery & { [NEXT]?: readonly CompiledQuery[] };

/**
 * Says which queries this one will probably be followed by, whatever it answers, so that a database may send all of them at once. Yield
 * the same objects later. They must only read.
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
  /** Runs first on every new connection; when it throws, the caller who wanted the connection gets that error. */
  set whenConnected(work: (() => Work<void>) | undefined);
  /** Makes the memory of a transaction with several parts. */
  set memory(make: (() => Memory) | undefined);
  /**
   * All or nothing. `project` names the only project that the work locks: transactions of one project share a few connections,
   * so that other projects never wait for them.
   */
  transact<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait, project?: string): Promise<Result>;
  /** Read-only, and concurrent with everything else. All queries see the same moment. */
  read<Result>(work: () => Work<Result>, wait: Wait): Promise<Result>;
  /**
   * Reads more than should be in memory at once, concurrent with everything else. All queries see the same moment, however long
   * reading takes. Only the wait bounds it.
   */
  snapshot<Result>(work: (snapshot: Snapshot) => Promise<Result>, wait: Wait): Promise<Result>;
  close(): Promise<void>;
}

export interface Snapshot {
  /** The rows of one query. Read one stream after the other: finish or leave one before you start the next. */
  stream<Row>(query: CompiledQuery<Row>): AsyncIterable<Row>;
}

/**
 * What the parts of a transaction know together, and what they leave to be written at its end. It holds only as long as the transaction:
 * nobody else may be able to change what is remembered before that ends.
 */
export interface Memory {
  /** `queries`: what the parts will probably ask for. Returns what to ask for at once, so that each is remembered; may be empty. */
  gather(queries: readonly CompiledQuery[]): readonly CompiledQuery[];
  /** What the database would answer; `undefined` = it must be asked. */
  recall(query: CompiledQuery): readonly unknown[] | undefined;
  /** What to ask the database instead, of which nothing is known: then the whole answer can be recalled. */
  missing(query: CompiledQuery): CompiledQuery;
  /** The database was asked, or was told to write, and does so before whatever comes later. */
  note(query: CompiledQuery, answer: readonly unknown[]): void;
  /** What was written since a savepoint is rolled back. */
  forget(): void;
  /** Leaves a write of the part that runs for later. Returns what the database would answer; `undefined` = it must be told now. */
  postpone(query: CompiledQuery): readonly unknown[] | undefined;
  /** The part that runs has postponed something, which it would not find in the database. */
  readonly isPostponing: boolean;
  /** What the part that runs has postponed, to be written now. */
  takeOwn(): readonly CompiledQuery[];
  /** What the parts before it have postponed, to be written now; with a query, only if its answer may depend on that. */
  takeDue(query?: CompiledQuery): readonly CompiledQuery[];
  /** The part has ended; `isWritten`: what it has postponed will be written. */
  endPart(isWritten: boolean): void;
}

/** What was postponed could not be written: nobody knows for which part. The transaction must be rolled back. */
export class PostponedError extends Error {
  constructor(cause: unknown) {
    super('what was postponed could not be written', { cause });
  }
}

/** The database did not confirm a commit: the transaction may or may not be recorded. */
export class CommitInDoubtError extends LedgerUnavailableError {
  /** What the transaction would have returned. */
  readonly result: unknown;

  constructor(message: string, result: unknown, options: ErrorOptions) {
    super(message, options);
    this.result = result;
  }
}
