/** Connections to PostgreSQL: how many are open, who may use one, and what happens to one that failed. */

import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { inTime, type Wait } from '../deadline.ts';
import { LedgerUnavailableError } from '../errors.ts';
import type { Work } from './database.ts';
import { Gate } from './gate.ts';
import { asUnavailable, isFull, isTlsRefusal, run } from './postgres-queries.ts';
import { type PostgresPlace, postgresPlace } from './postgres-settings.ts';

/** PostgreSQL's number for the type `bigint`, which pg would read as text. */
const INT8 = 20;
/** When the server was full, one more connection is tried after this many milliseconds. */
const GROWS_AFTER = 2000;
/** Between two attempts to get one of the server's last connections, in milliseconds. */
const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 500;

export interface PostgresSettings {
  readonly poolSize: number;
  /** How long to wait for a connection and for one statement, in seconds. */
  readonly timeout: number;
}

export class PostgresPool {
  readonly #pool: pg.Pool;
  readonly #attempts: PostgresPlace['attempts'];
  #attempt = 0;
  readonly #poolSize: number;
  /** In front of the pool: pg's own queue does not notice that a waiting caller has given up. */
  readonly #gate: Gate;
  /**
   * At most a quarter of the connections work for one project: all but one of them would only wait for the row that locks the
   * project, and keep connections from other projects. More than one, since the next transaction begins while the one before
   * commits.
   */
  readonly #projects = new Map<string, Gate>();
  #open = 0;
  #shrunk = Number.NEGATIVE_INFINITY;
  readonly #verified = new WeakSet<pg.PoolClient>();
  /** Runs first on every new connection; when it throws, the caller who wanted the connection gets that error. */
  whenConnected: (() => Work<void>) | undefined;

  /** Throws an `Error` for a URL that libpq would not understand. */
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

  /**
   * Lends a connection. When the wait ends first or the work fails in any way, the connection is closed, which rolls back what it
   * had begun.
   */
  async withClient<Result>(wait: Wait, work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
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

  /** Resolves when a connection may work for this project; call the result when it has. */
  async enterProject(project: string, wait: Wait): Promise<() => void> {
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

  async close(): Promise<void> {
    await this.#pool.end();
  }

  /** A pooled connection or a new one; when the server has none left, a pooled one as soon as it is free. */
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
        throw new LedgerUnavailableError('no connection is free, and the server accepts no more');
      });
    }
  }

  /** With or without TLS, where the settings leave that open: what the server accepted is tried first from then on. */
  async #connectOnce(wait: Wait): Promise<pg.PoolClient> {
    wait.throwIfOver();
    for (let refused = 0, attempt = this.#attempt; ; refused += 1) {
      this.#pool.options.ssl = this.#attempts[attempt] ?? false;
      const connecting = this.#pool.connect();
      try {
        return await inTime(asUnavailable(connecting), wait);
      } catch (thrown) {
        // It may still connect, and nobody waits for it any more.
        connecting.then(
          (client) => client.release(),
          () => {},
        );
        if (refused + 1 >= this.#attempts.length || !isTlsRefusal(thrown)) {
          throw thrown;
        }
        // The next of the attempts of this call: another call may have moved `#attempt` meanwhile.
        attempt = (attempt + 1) % this.#attempts.length;
        this.#attempt = attempt;
      }
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

function* nothing(): Work<void> {}

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
  // An idle connection may break: the next caller gets another.
  pool.on('error', () => {});
  // When a connection in use breaks, its query fails; without this listener the process would end as well.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}
