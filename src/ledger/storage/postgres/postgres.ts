/** A ledger in PostgreSQL, which several machines can share. */

import { type CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import type { Wait } from '../../../base/deadline.ts';
import { errorText } from '../../../base/errors.ts';
import { CommitGroups, type GroupWork } from '../commit-group.ts';
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
import type { Pipeline } from './pipeline.ts';
import { PostgresPool, type PostgresSettings } from './pool.ts';
import { fetched, isOwn, isStalePlan, isVictim, query } from './queries.ts';

const READ_ONLY = 'ISOLATION LEVEL REPEATABLE READ READ ONLY';

/** The first of a group waits for its last: with so many parts, for no longer than a commit takes on a slow disk. */
const BOUNDS: GroupBounds = { members: 64, milliseconds: 50, characters: 1024 * 1024 };

interface Attempt {
  isCareful: boolean;
  /** `undefined` = it has not begun. */
  pipeline: Pipeline | undefined;
}

/** What reaches a part is its own: the pipeline keeps every other error to itself. */
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
  /** A project that is busy has one connection; the others that want one wait in one line for theirs. */
  readonly #projects = new Map<string, CommitGroups>();

  /** `bounds`: of what is committed together. Throws an `Error` for a URL that libpq would not understand. */
  constructor(url: string, settings: PostgresSettings, bounds = BOUNDS) {
    this.#bounds = bounds;
    this.#pool = new PostgresPool(url, settings);
  }

  set whenConnected(work: (() => Work<void>) | undefined) {
    this.#pool.whenConnected = work;
  }

  /**
   * Transactions of one project that wait at the same time are committed together: each would wait for the row that locks the project,
   * with a connection that others need.
   */
  transact<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait, project?: string): Promise<Result> {
    if (project === undefined) {
      const alone: Attempt = { isCareful: false, pipeline: undefined };
      return this.#again(() => this.#attempt(work, wait, alone), alone);
    }
    let groups = this.#projects.get(project);
    if (groups === undefined) {
      groups = new CommitGroups({
        commit: (group, patience) => this.#commit(group, patience),
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

  async #commit(work: GroupWork, wait: Wait): Promise<unknown> {
    const attempt: Attempt = { isCareful: false, pipeline: undefined };
    const transact = () => this.#attempt(() => work.begin(attempt.isCareful), wait, attempt);
    try {
      return await this.#again(transact, attempt);
    } catch (thrown) {
      if (!isOwn(thrown) || !work.hasSeveral || attempt.pipeline?.isInDoubt) {
        throw thrown;
      }
    }
    // One of the parts has failed alone: once more, waiting for each answer, to see which.
    attempt.isCareful = true;
    return this.#again(transact, attempt);
  }

  #attempt<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait, attempt: Attempt): Promise<Result> {
    attempt.pipeline = undefined;
    return this.#pool.withClient(wait, async (_, begin) => {
      // Whatever the database's default is: once the project is locked, each query must see the latest state.
      const { isCareful } = attempt;
      const pipeline = await begin({ mode: 'ISOLATION LEVEL READ COMMITTED', isCareful });
      attempt.pipeline = pipeline;
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
    });
  }

  /** Once more, if nothing was committed, and only this time was wrong. */
  async #again<Result>(transact: () => Promise<Result>, attempt?: Attempt): Promise<Result> {
    try {
      return await transact();
    } catch (thrown) {
      // Of a statement from before an upgrade, a new connection knows nothing.
      const isWorthIt = isStalePlan(thrown)
        ? !attempt?.pipeline?.isCommitSent
        : isVictim(thrown) && !attempt?.pipeline?.isInDoubt;
      if (!isWorthIt) {
        throw thrown;
      }
      return transact();
    }
  }

  read<Result>(work: () => Work<Result>, wait: Wait): Promise<Result> {
    return this.#again(() =>
      this.#pool.withClient(wait, async (_, begin) => {
        // All queries see the same moment, whoever writes between them.
        const pipeline = await begin({ mode: READ_ONLY });
        const result = await pipeline.run(work());
        await pipeline.execute('COMMIT');
        return result;
      }),
    );
  }

  snapshot<Result>(work: (snapshot: Snapshot) => Promise<Result>, wait: Wait): Promise<Result> {
    return this.#pool.withClient(wait, async (client, begin) => {
      await begin({ mode: READ_ONLY });
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
