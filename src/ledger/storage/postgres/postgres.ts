/** A ledger in PostgreSQL, which several machines can share. */

import { type CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import type { Wait } from '../../../base/deadline.ts';
import { errorText } from '../../../base/errors.ts';
import { CommitGroups } from '../commit-group.ts';
import {
  CommitInDoubtError,
  type Database,
  type Memory,
  type Snapshot,
  Undone,
  type Work,
} from '../database.ts';
import type { GroupBounds } from '../group-parts.ts';
import type { Tables } from '../schema.ts';
import { PostgresPool, type PostgresSettings } from './pool.ts';
import { fetched, isOwn, isStalePlan, isVictim, query } from './queries.ts';

const READ_ONLY = 'ISOLATION LEVEL REPEATABLE READ READ ONLY';

/** The first part of a group waits for its last: at most as long as a commit on a slow disk takes. */
const BOUNDS: GroupBounds = { members: 64, milliseconds: 50, characters: 1024 * 1024 };

/** The server may have closed several connections of the pool. */
const MOST_RETRIES = 3;

/** An error that reaches a part is its own: the pipeline stores every other error. */
const ownError = (error: unknown) => ({ error });

export class PostgresDatabase implements Database {
  readonly dialect = 'postgresql';
  readonly queries = new Kysely<Tables>({
    // It compiles queries, and never connects.
    dialect: new PostgresDialect({ pool: () => Promise.reject(new Error('it only compiles queries')) }),
  });
  readonly #pool: PostgresPool;
  readonly #bounds: GroupBounds;
  memory: (() => Memory) | undefined;
  /** A busy project has one connection; its other transactions wait for it in order of arrival. */
  readonly #projects = new Map<string, CommitGroups>();

  /** `bounds`: limits of a group. Throws an `Error` for a URL that libpq does not accept. */
  constructor(url: string, settings: PostgresSettings, bounds = BOUNDS) {
    this.#bounds = bounds;
    this.#pool = new PostgresPool(url, settings);
  }

  set whenConnected(work: (() => Work<void>) | undefined) {
    this.#pool.whenConnected = work;
  }

  /**
   * Concurrent transactions of one project are committed together: otherwise each would wait for the lock of
   * the project, with a connection that others need.
   */
  transact<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait, project?: string): Promise<Result> {
    if (project === undefined) {
      return this.#commit(work, wait);
    }
    let groups = this.#projects.get(project);
    if (groups === undefined) {
      groups = new CommitGroups({
        commit: (group, patience) => this.#commit(group, patience),
        isOfOne: isOwn,
        ownError,
        asksAhead: true,
        memory: () => this.memory?.(),
        bounds: this.#bounds,
      });
      this.#projects.set(project, groups);
    }
    const joined = groups;
    return joined.join(work, wait).finally(() => {
      if (joined.isEmpty && this.#projects.get(project) === joined) {
        this.#projects.delete(project);
      }
    });
  }

  #commit<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait): Promise<Result> {
    return this.#again(() =>
      this.#pool.withClient(wait, async (_, begin) => {
        // Overrides the database's default: once the project is locked, each query must see the latest state.
        const pipeline = await begin('ISOLATION LEVEL READ COMMITTED');
        const result = await pipeline.run(work());
        wait.throwIfOver();
        if (result instanceof Undone) {
          await pipeline.execute('ROLLBACK');
          return result.result;
        }
        await pipeline.commit().catch((thrown: unknown) => {
          throw pipeline.isInDoubt
            ? new CommitInDoubtError(errorText(thrown), result, { cause: thrown })
            : thrown;
        });
        return result;
      }),
    );
  }

  /** Retries if nothing was committed and a retry can succeed. */
  async #again<Result>(transact: () => Promise<Result>): Promise<Result> {
    for (let retries = 0; ; retries += 1) {
      try {
        return await transact();
      } catch (thrown) {
        // A new connection has no prepared statements from before an upgrade.
        const mayHelp = isStalePlan(thrown) || isVictim(thrown);
        if (thrown instanceof CommitInDoubtError || !mayHelp || retries === MOST_RETRIES) {
          throw thrown;
        }
      }
    }
  }

  read<Result>(work: () => Work<Result>, wait: Wait): Promise<Result> {
    return this.#again(() =>
      this.#pool.withClient(wait, async (_, begin) => {
        // All queries see the same snapshot, despite concurrent writes.
        const pipeline = await begin(READ_ONLY);
        const result = await pipeline.run(work());
        await pipeline.execute('COMMIT');
        return result;
      }),
    );
  }

  snapshot<Result>(work: (snapshot: Snapshot) => Promise<Result>, wait: Wait): Promise<Result> {
    return this.#pool.withClient(wait, async (client, begin) => {
      await begin(READ_ONLY);
      // Reading everything may take long, and so may its consumer.
      await query(client, 'SET LOCAL statement_timeout = 0');
      await query(client, 'SET LOCAL idle_in_transaction_session_timeout = 0');
      const whileAlive: PostgresPool['whileAlive'] = (answer) => this.#pool.whileAlive(answer);
      const stream = <Row>(compiled: CompiledQuery<Row>) => fetched(client, compiled, wait, whileAlive);
      const result = await work({ stream });
      await query(client, 'COMMIT');
      return result;
    });
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}
