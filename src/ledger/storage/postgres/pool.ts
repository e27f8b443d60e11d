/** The connection pool for PostgreSQL: opening, lending, and handling failures. */

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { Semaphore } from '../../../base/concurrency-limiter.ts';
import { inTime, type Wait } from '../../../base/deadline.ts';
import { LedgerUnavailableError } from '../../../base/errors.ts';
import type { Work } from '../database.ts';
import { whileAlive } from './liveness.ts';
import { Pipeline } from './pipeline.ts';
import { asUnavailable, isFull, isStalePlan, isTlsRefusal } from './queries.ts';
import { type PostgresPlace, postgresPlace, type Setting } from './settings.ts';

/** PostgreSQL's number of the type `bigint`, which pg would read as text. */
const INT8 = 20;
/**
 * In seconds: a busy connection would never follow an address that has moved, as long as the old server answers,
 * and the leases of a replaced primary are lost.
 */
const LIFETIME = 60;
/** After the server was full, one more connection is tried after this many milliseconds. */
const GROWS_AFTER = 2000;
/** Pause between attempts to get one of the server's last connections, in milliseconds. */
const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 500;

export interface PostgresSettings {
  readonly poolSize: number;
  /** Timeout for a connection and for one statement, in seconds. */
  readonly timeout: number;
}

/** Uses a connection. `begin`: begins a transaction on it, with this mode. */
type ClientWork<Result> = (
  client: pg.PoolClient,
  begin: (mode: string) => Promise<Pipeline>,
) => Promise<Result>;

export class PostgresPool {
  readonly #pool: pg.Pool;
  readonly #config: pg.PoolConfig;
  /** In milliseconds. */
  readonly #timeout: number;
  readonly #attempts: PostgresPlace['attempts'];
  #attempt = 0;
  readonly #poolSize: number;
  /** In front of the pool: pg's own queue does not notice that a waiting caller has given up. */
  readonly #semaphore: Semaphore;
  #open = 0;
  #shrunk = Number.NEGATIVE_INFINITY;
  readonly #sessions = new WeakMap<pg.PoolClient, PostgresSession>();
  /** Connections of earlier generations are not reused: their prepared statements predate an upgrade. */
  #generation = 0;
  readonly #settings: readonly Setting[];
  /**
   * Runs first on every new connection and server; if it throws, the caller that wanted the connection gets
   * the error.
   */
  whenConnected: (() => Work<void>) | undefined;

  /** Throws an `Error` for a URL that libpq does not accept. */
  constructor(url: string, { poolSize, timeout }: PostgresSettings) {
    const { config, attempts, settings } = postgresPlace(url);
    this.#timeout = timeout * 1000;
    this.#settings = [
      ['statement_timeout', String(this.#timeout)],
      ['idle_in_transaction_session_timeout', String(this.#timeout)],
      ...settings,
    ];
    this.#attempts = attempts;
    this.#poolSize = poolSize;
    this.#semaphore = new Semaphore(poolSize);
    this.#config = poolConfig(config, { poolSize, timeout });
    this.#pool = createPool(this.#config);
    this.#pool.on('connect', () => {
      this.#open += 1;
    });
    this.#pool.on('remove', () => {
      this.#open -= 1;
    });
  }

  /**
   * Lends a connection. If the wait ends first or the work fails, the connection is closed, which rolls back
   * its transaction.
   */
  async withClient<Result>(wait: Wait, work: ClientWork<Result>): Promise<Result> {
    if (this.#semaphore.limit < this.#poolSize && performance.now() - this.#shrunk > GROWS_AFTER) {
      this.#shrunk = performance.now();
      this.#semaphore.limit += 1;
      this.#semaphore.open();
    }
    const leave = await this.#semaphore.enter(wait);
    try {
      return await this.#withConnection(await this.#connect(wait), wait, work);
    } finally {
      leave();
    }
  }

  /** Awaits an answer that may take longer than the timeout, as long as the server lives. */
  whileAlive<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const newClient = () => new pg.Client({ ...this.#config, ssl: this.#attempts[this.#attempt] ?? false });
    return whileAlive(answer, newClient, this.#timeout);
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** A pooled or new connection; if the server is full, a pooled one as soon as it is free. */
  async #connect(wait: Wait): Promise<pg.PoolClient> {
    for (let longest = SHORTEST_PAUSE; ; longest = Math.min(2 * longest, LONGEST_PAUSE)) {
      try {
        for (;;) {
          const client = await this.#connectOnce(wait);
          const session = this.#sessions.get(client);
          if (session === undefined || session.generation === this.#generation) {
            return client;
          }
          client.release(true);
        }
      } catch (thrown) {
        if (!isFull(thrown)) {
          throw thrown;
        }
      }
      this.#semaphore.limit = Math.max(1, this.#open);
      this.#shrunk = performance.now();
      await pause(longest * (0.5 + Math.random() / 2), undefined, { signal: wait.signal }).catch(() => {
        wait.throwIfOver();
        throw new LedgerUnavailableError('no connection is free, and the server accepts no more');
      });
    }
  }

  /**
   * With or without TLS, if the settings allow both: the variant that the server accepted is tried first from
   * then on.
   */
  async #connectOnce(wait: Wait): Promise<pg.PoolClient> {
    wait.throwIfOver();
    for (let refused = 0, attempt = this.#attempt; ; refused += 1) {
      this.#pool.options.ssl = this.#attempts[attempt] ?? false;
      const connecting = this.#pool.connect();
      try {
        return await inTime(asUnavailable(connecting), wait);
      } catch (thrown) {
        // It may still connect, but its caller is gone.
        connecting.then(
          (client) => client.release(),
          () => {},
        );
        if (refused + 1 >= this.#attempts.length || !isTlsRefusal(thrown)) {
          throw thrown;
        }
        // The next attempt of this call: another call may have changed `#attempt` in the meantime.
        attempt = (attempt + 1) % this.#attempts.length;
        this.#attempt = attempt;
      }
    }
  }

  async #withConnection<Result>(
    client: pg.PoolClient,
    wait: Wait,
    work: ClientWork<Result>,
  ): Promise<Result> {
    const { signal } = wait;
    let isReleased = false;
    const release = (broken: boolean) => {
      if (!isReleased) {
        isReleased = true;
        signal?.removeEventListener('abort', giveUp);
        client.release(broken);
        if (broken) {
          // With pending queries pg would wait for their results first, and the server for a lock.
          client.connection.stream.destroy();
        }
      }
    };
    const giveUp = () => release(true);
    signal?.addEventListener('abort', giveUp, { once: true });
    const session = this.#sessions.get(client) ?? new PostgresSession(client, this.#generation);
    this.#sessions.set(client, session);
    try {
      wait.throwIfOver();
      const { whenConnected } = this;
      const parts = { settings: this.#settings, whenConnected };
      const result = await work(client, (mode) => session.begin(mode, parts, wait));
      release(false);
      return result;
    } catch (thrown) {
      release(true);
      if (isStalePlan(thrown) && session.generation === this.#generation) {
        this.#generation += 1;
      }
      throw thrown;
    }
  }
}

function poolConfig(config: pg.PoolConfig, { poolSize, timeout }: PostgresSettings): pg.PoolConfig {
  const milliseconds = timeout * 1000;
  return {
    connectionTimeoutMillis: milliseconds,
    ...config,
    max: poolSize,
    maxLifetimeSeconds: LIFETIME,
    query_timeout: milliseconds,
    keepAlive: true,
    // The default of two hours is how long a read waits on a connection that was dropped silently.
    keepAliveInitialDelayMillis: milliseconds,
    pipeline: true,
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === INT8 ? (text: string) => BigInt(text) : pg.types.getTypeParser(oid, format as 'text'),
    },
  };
}

/** pg only ends its side when a server does not speak its protocol: the process would last as long as that server likes. */
class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    this.connection.once('error', () => this.connection.stream.destroy());
  }
}

function createPool(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({ ...config, Client });
  // An idle connection may break: the next caller gets another one.
  pool.on('error', () => {});
  // If a connection in use breaks, its query fails; without this listener the process would end, too.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/** The backend process, and the start time of its server: another time means another or restored server. */
const WHO = 'SELECT pg_backend_pid() AS process, pg_postmaster_start_time()::text AS server';

interface SessionParts {
  readonly settings: readonly Setting[];
  /** Runs first on a new connection, and on a server that was restarted or replaced. */
  readonly whenConnected: (() => Work<void>) | undefined;
}

class PostgresSession {
  readonly client: pg.PoolClient;
  /** The generation of the pool when it was opened. */
  readonly generation: number;
  /** `undefined` = not known yet. */
  #server: string | undefined;
  #isPooled = true;

  constructor(client: pg.PoolClient, generation: number) {
    this.client = client;
    this.generation = generation;
  }

  async begin(mode: string, parts: SessionParts, wait: Wait): Promise<Pipeline> {
    if (this.#server === undefined) {
      const begin = beginning('READ ONLY', parts);
      const first = new Pipeline(this.client, { begin, wait, mayPrepare: false });
      await this.#meet(first, parts);
      await first.execute('COMMIT');
    }
    const begin = beginning(mode, parts);
    const pipeline = new Pipeline(this.client, { begin, wait, mayPrepare: !this.#isPooled });
    if (this.#isPooled) {
      await this.#meet(pipeline, parts);
    }
    return pipeline;
  }

  /** A pooler reports a process id of its own to its clients. */
  async #meet(pipeline: Pipeline, { whenConnected }: SessionParts): Promise<void> {
    const [row] = await pipeline.execute(WHO);
    const { process, server } = row as { readonly process: number; readonly server: string };
    this.#isPooled = process !== processOf(this.client);
    if (server !== this.#server) {
      if (whenConnected !== undefined) {
        await pipeline.run(whenConnected());
      }
      this.#server = server;
    }
  }
}

/** Throws if the connection goes through a pooler. For work that needs more than one transaction. */
export async function requireServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ process: number }>('SELECT pg_backend_pid() AS process');
  if (rows[0]?.process !== processOf(client)) {
    throw new LedgerUnavailableError(
      'the options in the URL cannot be used through a pooler here: connect to the server itself',
    );
  }
}

/** The process id that the server reported when the client connected. */
function processOf(client: pg.Client): unknown {
  return Reflect.get(client, 'processID');
}

function beginning(mode: string, { settings }: SessionParts): string {
  const values = settings.map(
    ([name, value]) => `set_config(${pg.escapeLiteral(name)}, ${pg.escapeLiteral(value)}, true)`,
  );
  return `BEGIN ${mode}; SELECT ${values.join(', ')}`;
}
