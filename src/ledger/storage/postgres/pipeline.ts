/**
 * The queries of one transaction on one connection to PostgreSQL. Queries whose result is not needed
 * immediately are sent without waiting: announced queries, writes without results, savepoints, and the commit
 * after them. A lease takes two round trips, and so does a group of leases.
 *
 * A failure of a query that was not awaited cannot be attributed to its part.
 */
import type { CompiledQuery } from 'kysely';
import pg from 'pg';
import type { Wait } from '../../../base/deadline.ts';
import { errorText, LedgerUnavailableError } from '../../../base/errors.ts';
import { announcedWith, type Work } from '../database.ts';
import { isSavepointStep } from '../group-parts.ts';
import { statementOf } from '../prepared.ts';
import { unavailable } from './queries.ts';

/** Maximum number of writes sent without awaiting results. */
const MOST_UNANSWERED = 100;

interface PipelineParts {
  readonly begin: string;
  readonly wait: Wait;
  /** Whether later transactions use the same session. */
  readonly mayPrepare: boolean;
}

export class Pipeline {
  readonly #client: pg.PoolClient;
  readonly #parts: PipelineParts;
  readonly #begun: Promise<unknown>;
  readonly #ahead = new Map<CompiledQuery, Promise<pg.QueryResult>>();
  #unanswered = 0;
  #isCorked = false;
  /** The first error: later queries fail because of it. */
  #failure: Error | undefined;
  #isCommitSent = false;
  #isRolledBack = false;

  constructor(client: pg.PoolClient, parts: PipelineParts) {
    this.#client = client;
    this.#parts = parts;
    this.#begun = this.#send({ text: parts.begin }, notBegun);
  }

  /**
   * Whether a failed commit may have been applied: it was sent, and the server has rejected no query before
   * it.
   */
  get isInDoubt(): boolean {
    return this.#isCommitSent && !this.#isRolledBack;
  }

  /** Runs the queries of a work. Writes may still be pending when it resolves: `commit` awaits them. */
  async run<Result>(work: Work<Result>): Promise<Result> {
    let step = work.next([]);
    while (!step.done) {
      this.#parts.wait.throwIfOver();
      const query = step.value;
      if (isSavepointStep(query)) {
        this.#query(query);
        step = work.next([]);
        continue;
      }
      if (returnsNothing(query)) {
        await this.#write(query);
        step = work.next([]);
        continue;
      }
      const answer = this.#ahead.get(query) ?? this.#query(query);
      // A repeated query may have another result.
      this.#ahead.delete(query);
      for (const next of announcedWith(query)) {
        this.#ahead.set(next, this.#query(next));
      }
      const { rows } = await answer;
      // An earlier query that was not awaited may have failed: above all BEGIN.
      this.#throwFailure();
      step = work.next(rows);
    }
    return step.value;
  }

  /** One statement without parameters. */
  async execute(text: string): Promise<unknown[]> {
    const { rows } = await this.#send({ text });
    this.#throwFailure();
    return rows;
  }

  /**
   * Throws unless the commit is known to be durable. If the server stops waiting for its standby, because of
   * a shutdown or timeout, it has committed and returns a warning: a lease that the standby lacks is lost in
   * a failover.
   */
  async commit(): Promise<void> {
    this.#throwFailure();
    let warning: string | undefined;
    const listen = ({ message }: { message?: string | undefined }) => {
      // Ignores warnings of earlier writes.
      if (this.#unanswered === 1) {
        warning = message ?? 'a warning';
      }
    };
    this.#client.on('notice', listen);
    try {
      const committed = this.#send({ text: 'COMMIT' });
      this.#isCommitSent = true;
      const { command } = await committed;
      this.#throwFailure();
      if (command !== 'COMMIT' || warning !== undefined) {
        throw new LedgerUnavailableError(warning ?? `the server answered ${command} to COMMIT`);
      }
    } finally {
      this.#client.off('notice', listen);
    }
  }

  /** Awaits BEGIN: without a transaction, the write would be committed at once, whatever fails later. */
  async #write(query: CompiledQuery): Promise<void> {
    await this.#begun;
    this.#throwFailure();
    const answer = this.#query(query);
    if (this.#unanswered >= MOST_UNANSWERED) {
      await answer;
      this.#throwFailure();
    }
  }

  #query(query: CompiledQuery): Promise<pg.QueryResult> {
    const name = this.#parts.mayPrepare ? statementOf(query) : undefined;
    const { sql: text, parameters } = query;
    return this.#send({ text, values: [...parameters], ...(name !== undefined && { name }) });
  }

  /** Never an unhandled rejection: the failure is stored. */
  #send(query: pg.QueryConfig, failureOf = unavailable): Promise<pg.QueryResult> {
    this.#unanswered += 1;
    this.#cork();
    const answer = new Promise<pg.QueryResult>((resolve, reject) => {
      this.#client.query(query, (thrown: Error | null | undefined, result: pg.QueryResult) => {
        this.#unanswered -= 1;
        if (thrown) {
          this.#isRolledBack ||=
            thrown instanceof pg.DatabaseError && !(this.#isCommitSent && this.#unanswered === 0);
          this.#failure ??= failureOf(thrown);
          reject(this.#failure);
        } else {
          resolve(result);
        }
      });
    });
    answer.catch(() => {});
    return answer;
  }

  /** Sends everything of one tick in one write: each write costs as much as a small query. */
  #cork(): void {
    if (!this.#isCorked) {
      this.#isCorked = true;
      const { stream } = this.#client.connection;
      stream.cork();
      process.nextTick(() => {
        this.#isCorked = false;
        stream.uncork();
      });
    }
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) {
      throw this.#failure;
    }
  }
}

/** A setting that the server refuses is no content of a lease. */
function notBegun(thrown: unknown): LedgerUnavailableError {
  return new LedgerUnavailableError(errorText(thrown), { cause: thrown });
}

function returnsNothing({ query }: CompiledQuery): boolean {
  switch (query.kind) {
    case 'InsertQueryNode':
    case 'UpdateQueryNode':
    case 'DeleteQueryNode':
      return query.returning === undefined;
    default:
      return false;
  }
}
