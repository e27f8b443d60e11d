/** A ledger in PostgreSQL, which several machines share. */
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresDialect,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely';
import pg from 'pg';
import { inTime, type Wait } from '../deadline.ts';
import { errorText, LedgerUnavailableError } from '../errors.ts';
import { CommitInDoubtError, type Database, type Snapshot, Undone, type Work } from './database.ts';
import type { Tables } from './schema.ts';

/** PostgreSQL's number for the type `bigint`, which pg would read as text. */
const INT8 = 20;
/** So many rows of a long answer are in memory. */
const BATCH = 1000;
/** The longest time that a timer can be set to, in milliseconds: the first rows may be sums over all there are. */
const UNBOUNDED = 2 ** 31 - 1;
/** How soon the server notices that nobody waits for an answer any more, in milliseconds. PostgreSQL 14 or later knows this. */
const LOST_AFTER = 1000;

export interface PostgresSettings {
  readonly poolSize: number;
  /** How long to wait for a connection and for one statement, in seconds. */
  readonly timeout: number;
}

export class PostgresDatabase implements Database {
  readonly queries = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (database) => new PostgresIntrospector(database),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
  readonly #pool: pg.Pool;

  constructor(url: string, { poolSize, timeout }: PostgresSettings) {
    this.#pool = createPool(url, { poolSize, timeout });
  }

  transact<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait): Promise<Result> {
    return this.#withClient(wait, async (client) => {
      // Whatever the default of the database is: behind the lock, everything must be read as it is then.
      await ask(client, 'BEGIN ISOLATION LEVEL READ COMMITTED');
      const result = await run(client, work(), wait);
      wait.throwIfOver();
      if (result instanceof Undone) {
        await ask(client, 'ROLLBACK');
        return result.result;
      }
      await ask(client, 'COMMIT').catch((thrown: unknown) => {
        throw new CommitInDoubtError(errorText(thrown), result, { cause: thrown });
      });
      return result;
    });
  }

  read<Result>(work: () => Work<Result>, wait: Wait): Promise<Result> {
    return this.#withClient(wait, async (client) => {
      // All of one moment: between two queries somebody may write.
      await ask(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const result = await run(client, work(), wait);
      await ask(client, 'COMMIT');
      return result;
    });
  }

  snapshot<Result>(work: (snapshot: Snapshot) => Promise<Result>, wait: Wait): Promise<Result> {
    return this.#withClient(wait, async (client) => {
      await ask(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      // It may take its time, and so may whoever reads what it says.
      await ask(client, 'SET LOCAL statement_timeout = 0');
      await ask(client, 'SET LOCAL idle_in_transaction_session_timeout = 0');
      const result = await work({ stream: (query) => fetched(client, query, wait) });
      await ask(client, 'COMMIT');
      return result;
    });
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #connect(wait: Wait): Promise<pg.PoolClient> {
    wait.throwIfOver();
    const connecting = this.#pool.connect();
    try {
      return (await inTime(unavailable(connecting), wait)) as pg.PoolClient;
    } catch (thrown) {
      // It may come after all, and nobody waits for it any more.
      connecting.then(
        (client) => client.release(),
        () => {},
      );
      throw thrown;
    }
  }

  /**
   * What is not finished when the wait is over, or has failed in any way, is given up together with its connection, and with
   * that rolled back.
   */
  async #withClient<Result>(wait: Wait, work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    const client = await this.#connect(wait);
    const { signal } = wait;
    let isReleased = false;
    const release = (broken: boolean) => {
      if (!isReleased) {
        isReleased = true;
        signal?.removeEventListener('abort', giveUp);
        client.release(broken);
      }
    };
    const giveUp = () => release(true);
    signal?.addEventListener('abort', giveUp, { once: true });
    try {
      wait.throwIfOver();
      const result = await work(client);
      release(false);
      return result;
    } catch (thrown) {
      release(true);
      throw thrown;
    }
  }
}

async function run<Result>(client: pg.PoolClient, work: Work<Result>, wait: Wait): Promise<Result> {
  let step = work.next([]);
  while (!step.done) {
    wait.throwIfOver();
    const { sql, parameters } = step.value;
    step = work.next(await ask(client, sql, parameters));
  }
  return step.value;
}

async function* fetched<Row>(
  client: pg.PoolClient,
  { sql, parameters }: CompiledQuery<Row>,
  wait: Wait,
): AsyncIterable<Row> {
  // One that was left before its end is open still.
  await ask(client, 'CLOSE ALL');
  await ask(client, `DECLARE answer CURSOR FOR ${sql}`, parameters);
  for (let length = BATCH; length === BATCH; ) {
    wait.throwIfOver();
    const rows = await ask(client, { text: `FETCH ${BATCH} FROM answer`, query_timeout: UNBOUNDED });
    yield* rows as Row[];
    length = rows.length;
  }
}

function createPool(url: string, { poolSize, timeout }: PostgresSettings): pg.Pool {
  const milliseconds = timeout * 1000;
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    connectionTimeoutMillis: milliseconds,
    statement_timeout: milliseconds,
    idle_in_transaction_session_timeout: milliseconds,
    query_timeout: milliseconds,
    // A connection that was given up may be waiting for a project that somebody holds: the server looks whether anybody is there.
    options: `-c client_connection_check_interval=${LOST_AFTER}`,
    keepAlive: true,
    application_name: 'blazar-enforcement',
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === INT8 ? (text: string) => BigInt(text) : pg.types.getTypeParser(oid, format as 'text'),
    },
  });
  // A connection that nobody uses may break; the next one who wants one gets another.
  pool.on('error', () => {});
  // One that is in use and breaks tells its query; without this it would end the process besides.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** With tables to make or to change: kysely runs the queries itself. */
export function postgresDialect(url: string): PostgresDialect {
  return new PostgresDialect({
    pool: new pg.Pool({ connectionString: url, max: 1, connectionTimeoutMillis: 10_000 }),
  });
}

/** Whatever goes wrong with a query is the ledger's fault. */
async function ask(
  client: pg.PoolClient,
  sql: string | (pg.QueryConfig & { readonly query_timeout: number }),
  parameters: readonly unknown[] = [],
): Promise<unknown[]> {
  const { rows } = await unavailable(client.query(sql, [...parameters]));
  return rows;
}

async function unavailable<Result>(answer: Promise<Result>): Promise<Result> {
  try {
    return await answer;
  } catch (thrown) {
    throw new LedgerUnavailableError(errorText(thrown), { cause: thrown });
  }
}
