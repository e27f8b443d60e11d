/** A ledger in PostgreSQL, which several machines share. */

import { setTimeout as pause } from 'node:timers/promises';
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
import { errorText, LedgerContentError, LedgerUnavailableError } from '../errors.ts';
import { CommitInDoubtError, type Database, type Snapshot, Undone, type Work } from './database.ts';
import { Gate } from './gate.ts';
import { type PostgresPlace, postgresPlace } from './postgres-settings.ts';
import type { Tables } from './schema.ts';

/** PostgreSQL's number for the type `bigint`, which pg would read as text. */
const INT8 = 20;
/** So many rows of a long answer are in memory. */
const BATCH = 1000;
/** The longest time that a timer can be set to, in milliseconds: the first rows may be sums over all there are. */
const UNBOUNDED = 2 ** 31 - 1;
/** After so many milliseconds one connection more is tried, where the server had no more. */
const GROWS_AFTER = 2000;
/** Between two attempts to get one of the server's last connections, in milliseconds. */
const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 500;

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
  readonly #attempts: PostgresPlace['attempts'];
  #attempt = 0;
  readonly #poolSize: number;
  /** In front of the pool, since a connection that nobody can have is not waited for there. */
  readonly #gate: Gate;
  /**
   * At most a quarter of the connections work for one project: all but one of them would only wait for its row, and other
   * projects for them. More than one, since the next transaction begins while the one before commits.
   */
  readonly #projects = new Map<string, Gate>();
  #open = 0;
  #shrunk = Number.NEGATIVE_INFINITY;
  readonly #verified = new WeakSet<pg.PoolClient>();
  whenConnected: (() => Work<void>) | undefined;

  /** Throws an `Error` for a URL that says what libpq would not understand. */
  constructor(url: string, { poolSize, timeout }: PostgresSettings) {
    const { config, attempts } = postgresPlace(url);
    this.#attempts = attempts;
    this.#poolSize = poolSize;
    this.#gate = new Gate(poolSize);
    this.#pool = createPool(config, { poolSize, timeout });
    this.#pool.on('connect', () => {
      this.#open += 1;
    });
    this.#pool.on('remove', () => {
      this.#open -= 1;
    });
  }

  async transact<Result>(
    work: () => Work<Result | Undone<Result>>,
    wait: Wait,
    project?: string,
  ): Promise<Result> {
    const leave = project === undefined ? undefined : await this.#enterProject(project, wait);
    try {
      return await this.#transact(work, wait);
    } finally {
      leave?.();
    }
  }

  #transact<Result>(work: () => Work<Result | Undone<Result>>, wait: Wait): Promise<Result> {
    return this.#withClient(wait, async (client) => {
      // Whatever the default of the database is: behind the lock, everything must be read as it is then.
      await ask(client, 'BEGIN ISOLATION LEVEL READ COMMITTED');
      const result = await run(client, work(), wait);
      wait.throwIfOver();
      if (result instanceof Undone) {
        await ask(client, 'ROLLBACK');
        return result.result;
      }
      await commit(client).catch((thrown: unknown) => {
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

  async #enterProject(project: string, wait: Wait): Promise<() => void> {
    let gate = this.#projects.get(project);
    if (gate === undefined) {
      gate = new Gate(Math.max(1, Math.floor(this.#poolSize / 4)));
      this.#projects.set(project, gate);
    }
    const entered = gate;
    const forget = () => {
      if (entered.isEmpty) {
        this.#projects.delete(project);
      }
    };
    const leave = await entered.enter(wait).catch((thrown: unknown) => {
      forget();
      throw thrown;
    });
    return () => {
      leave();
      forget();
    };
  }

  /** One of our connections, or a new one; where the server has no more, one of ours when it is free. */
  async #connect(wait: Wait): Promise<pg.PoolClient> {
    for (let longest = SHORTEST_PAUSE; ; longest = Math.min(2 * longest, LONGEST_PAUSE)) {
      try {
        return await this.#connectOnce(wait);
      } catch (thrown) {
        if (!isFull(thrown)) {
          throw thrown;
        }
      }
      this.#gate.limit = Math.max(1, this.#open);
      this.#shrunk = performance.now();
      await pause(longest * (0.5 + Math.random() / 2), undefined, { signal: wait.signal }).catch(() => {
        wait.throwIfOver();
        throw new LedgerUnavailableError('the server has no connection left, nor have we');
      });
    }
  }

  /** With TLS or without, as far as that is left to the server: what it accepted is what is tried first from then on. */
  async #connectOnce(wait: Wait): Promise<pg.PoolClient> {
    wait.throwIfOver();
    for (let refused = 0, attempt = this.#attempt; ; refused += 1) {
      this.#pool.options.ssl = this.#attempts[attempt] ?? false;
      const connecting = this.#pool.connect();
      try {
        return (await inTime(unavailable(connecting), wait)) as pg.PoolClient;
      } catch (thrown) {
        // It may come after all, and nobody waits for it any more.
        connecting.then(
          (client) => client.release(),
          () => {},
        );
        if (refused + 1 >= this.#attempts.length || !isRefusal(thrown)) {
          throw thrown;
        }
        // The next of what was tried here: others may have found out meanwhile.
        attempt = (attempt + 1) % this.#attempts.length;
        this.#attempt = attempt;
      }
    }
  }

  /**
   * What is not finished when the wait is over, or has failed in any way, is given up together with its connection, and with
   * that rolled back.
   */
  async #withClient<Result>(wait: Wait, work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    if (this.#gate.limit < this.#poolSize && performance.now() - this.#shrunk > GROWS_AFTER) {
      this.#shrunk = performance.now();
      this.#gate.limit += 1;
      this.#gate.open();
    }
    const leave = await this.#gate.enter(wait);
    try {
      return await this.#withConnection(await this.#connect(wait), wait, work);
    } finally {
      leave();
    }
  }

  async #withConnection<Result>(
    client: pg.PoolClient,
    wait: Wait,
    work: (client: pg.PoolClient) => Promise<Result>,
  ): Promise<Result> {
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
      if (!this.#verified.has(client)) {
        await run(client, this.whenConnected?.() ?? nothing(), wait);
        this.#verified.add(client);
      }
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

function* nothing(): Work<void> {}

/**
 * Throws where it can't be told that it has happened. A server that gives up waiting for its standby, since it stops or the
 * time is over, has committed and says so with a warning: what a standby does not have is lost when that takes over.
 */
async function commit(client: pg.PoolClient): Promise<void> {
  let warning: string | undefined;
  const listen = ({ code, message }: { code?: string | undefined; message?: string | undefined }) => {
    if (code !== '00000') {
      warning = message ?? 'a warning';
    }
  };
  client.on('notice', listen);
  try {
    const { command } = await unavailable(client.query('COMMIT'));
    if (command !== 'COMMIT' || warning !== undefined) {
      throw new LedgerUnavailableError(warning ?? `the server answered ${command} to COMMIT`);
    }
  } finally {
    client.off('notice', listen);
  }
}

function createPool(config: pg.PoolConfig, { poolSize, timeout }: PostgresSettings): pg.Pool {
  const milliseconds = timeout * 1000;
  const pool = new pg.Pool({
    connectionTimeoutMillis: milliseconds,
    ...config,
    max: poolSize,
    statement_timeout: milliseconds,
    idle_in_transaction_session_timeout: milliseconds,
    query_timeout: milliseconds,
    keepAlive: true,
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
    pool: async () => {
      const { config, attempts } = postgresPlace(url);
      for (let refused = 0; ; refused += 1) {
        const ssl = attempts[refused] ?? false;
        const pool = new pg.Pool({ connectionTimeoutMillis: 10_000, ...config, ssl, max: 1 });
        pool.on('error', () => {});
        try {
          (await pool.connect()).release();
          return pool;
        } catch (thrown) {
          await pool.end();
          if (
            refused + 1 >= attempts.length ||
            !isRefusal(new LedgerUnavailableError('', { cause: thrown }))
          ) {
            throw thrown;
          }
        }
      }
    },
  });
}

/** The server would rather be asked with TLS, or without. Source: PostgreSQL docs, "Error Codes"; the driver has a text alone. */
function isRefusal(thrown: unknown): boolean {
  const { cause } = thrown instanceof LedgerUnavailableError ? thrown : { cause: undefined };
  return (
    /^28/.test(codeOf(thrown)) ||
    /^(ERR_SSL|ERR_TLS)/.test(codeOf(thrown)) ||
    (cause instanceof Error && cause.message === 'The server does not support SSL connections')
  );
}

/** As many are connected as the server allows, to all, to this role or to this database. */
function isFull(thrown: unknown): boolean {
  return codeOf(thrown) === '53300';
}

function codeOf(thrown: unknown): string {
  const { cause } = thrown instanceof Error ? thrown : { cause: undefined };
  return cause instanceof Error && 'code' in cause ? String(cause.code) : '';
}

/** A NUL in a text, a number that does not fit, a text that is too long for an index. Source: PostgreSQL docs, "Error Codes". */
const CONTENT = /^(22|54)/;

/** Whatever goes wrong with a query is the ledger's fault, but for what is in it. */
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
    const isContent = thrown instanceof pg.DatabaseError && CONTENT.test(thrown.code ?? '');
    throw new (isContent ? LedgerContentError : LedgerUnavailableError)(errorText(thrown), { cause: thrown });
  }
}
