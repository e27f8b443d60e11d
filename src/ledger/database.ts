/** What the ledger needs of a database. Two have it: SQLite and PostgreSQL. */
import type { CompiledQuery, Kysely } from 'kysely';
import type { Wait } from '../deadline.ts';
import { LedgerUnavailableError } from '../errors.ts';
import type { Tables } from './schema.ts';

/**
 * Steps of a transaction, one query a step. Written once for both databases: SQLite takes them in one go, and nothing else
 * happens in the process meanwhile; PostgreSQL takes them one answer after the other.
 */
export type Work<Result> = Generator<CompiledQuery, Result, readonly unknown[]>;

/** One query of a work: `yield* rows(query)`. */
export function* rows<Row>(query: CompiledQuery<Row>): Work<Row[]> {
  return (yield query) as Row[];
}

/** A work ends with this where nothing that it has written may stay. */
export class Undone<Result> {
  readonly result: Result;

  constructor(result: Result) {
    this.result = result;
  }
}

export interface Database {
  /** Builds queries; never runs one. */
  readonly queries: Kysely<Tables>;
  /** What is asked first where a connection is new; when it throws, so does what the connection was wanted for. */
  whenConnected: (() => Work<void>) | undefined;
  /**
   * All of it, or nothing. No other transaction of the same project runs beside it. `project`: the only one that it locks, so
   * that nobody else waits for it.
   */
  transact<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait, project?: string): Promise<Result>;
  /** Without writing, and beside others. */
  read<Result>(work: () => Work<Result>, wait: Wait): Promise<Result>;
  /**
   * A look at more than memory should hold at once, and beside others: all that is read in it is of one moment, however long
   * it takes. Nothing bounds it but the wait.
   */
  snapshot<Result>(work: (snapshot: Snapshot) => Promise<Result>, wait: Wait): Promise<Result>;
  close(): Promise<void>;
}

export interface Snapshot {
  /** The rows of one query, in batches. One stream after the other: the next begins when this one is over or left. */
  stream<Row>(query: CompiledQuery<Row>): AsyncIterable<Row>;
}

/** It was asked to commit, and has not answered: what was recorded may be there. */
export class CommitInDoubtError extends LedgerUnavailableError {
  /** What the transaction would have come to. */
  readonly result: unknown;

  constructor(message: string, result: unknown, options: ErrorOptions) {
    super(message, options);
    this.result = result;
  }
}
