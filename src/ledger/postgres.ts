/** A ledger in PostgreSQL, which several machines can share. */

import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely';
import type { Wait } from '../deadline.ts';
import { errorText } from '../errors.ts';
import { CommitInDoubtError, type Database, type Snapshot, Undone, type Work } from './database.ts';
import { PostgresPool, type PostgresSettings } from './postgres-pool.ts';
import { commit, fetched, query, run } from './postgres-queries.ts';
import type { Tables } from './schema.ts';

export class PostgresDatabase implements Database {
  readonly dialect = 'postgresql';
  readonly queries = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (database) => new PostgresIntrospector(database),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
  readonly #pool: PostgresPool;

  /** Throws an `Error` for a URL that libpq would not understand. */
  constructor(url: string, settings: PostgresSettings) {
    this.#pool = new PostgresPool(url, settings);
  }

  set whenConnected(work: (() => Work<void>) | undefined) {
    this.#pool.whenConnected = work;
  }

  async transact<Result>(
    work: () => Work<Result | Undone<Result>>,
    wait: Wait,
    project?: string,
  ): Promise<Result> {
    const leave = project === undefined ? undefined : await this.#pool.enterProject(project, wait);
    try {
      return await this.#transact(work, wait);
    } finally {
      leave?.();
    }
  }

  #transact<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait): Promise<Result> {
    return this.#pool.withClient(wait, async (client) => {
      // Whatever the database's default is: once the project is locked, each query must see the latest state.
      await query(client, 'BEGIN ISOLATION LEVEL READ COMMITTED');
      const result = await run(client, work(), wait);
      wait.throwIfOver();
      if (result instanceof Undone) {
        await query(client, 'ROLLBACK');
        return result.result;
      }
      await commit(client).catch((thrown: unknown) => {
        throw new CommitInDoubtError(errorText(thrown), result, { cause: thrown });
      });
      return result;
    });
  }

  read<Result>(work: () => Work<Result>, wait: Wait): Promise<Result> {
    return this.#pool.withClient(wait, async (client) => {
      // All queries see the same moment, whoever writes between them.
      await query(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const result = await run(client, work(), wait);
      await query(client, 'COMMIT');
      return result;
    });
  }

  snapshot<Result>(work: (snapshot: Snapshot) => Promise<Result>, wait: Wait): Promise<Result> {
    return this.#pool.withClient(wait, async (client) => {
      await query(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      // Reading everything may take long, and so may whoever consumes it.
      await query(client, 'SET LOCAL statement_timeout = 0');
      await query(client, 'SET LOCAL idle_in_transaction_session_timeout = 0');
      const stream = <Row>(compiled: CompiledQuery<Row>) => fetched(client, compiled, wait);
      const result = await work({ stream });
      await query(client, 'COMMIT');
      return result;
    });
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}
