/**
 * A connection to PostgreSQL, or to a pooler such as PgBouncer that lends one for each transaction. Nothing may live in the session: each
 * transaction brings its settings along.
 */
import pg from 'pg';
import type { Wait } from '../../../base/deadline.ts';
import { LedgerUnavailableError } from '../../../base/errors.ts';
import type { Work } from '../database.ts';
import { Pipeline } from './pipeline.ts';
import type { Setting } from './settings.ts';

/** The process that answers, and since when its server runs: another time is another server, or one that was restored. */
const WHO = 'SELECT pg_backend_pid() AS process, pg_postmaster_start_time()::text AS server';

export interface SessionParts {
  readonly settings: readonly Setting[];
  /** Runs before anything else on a new connection, and on a server that was not there before. */
  readonly whenConnected: (() => Work<void>) | undefined;
}

/** How a transaction begins. */
export interface Beginning {
  /** As BEGIN has it. */
  readonly mode: string;
  /** Whether every answer is waited for. */
  readonly isCareful?: boolean | undefined;
}

export class PostgresSession {
  readonly client: pg.PoolClient;
  /** Of the pool, when it was opened. */
  readonly generation: number;
  /** `undefined` = it is not known yet. */
  #server: string | undefined;
  #isPooled = true;

  constructor(client: pg.PoolClient, generation: number) {
    this.client = client;
    this.generation = generation;
  }

  /** Whether another transaction may run in another session: nothing can be prepared there. */
  get isPooled(): boolean {
    return this.#isPooled;
  }

  async begin({ mode, isCareful }: Beginning, parts: SessionParts, wait: Wait): Promise<Pipeline> {
    if (this.#server === undefined) {
      const begin = beginning('READ ONLY', parts);
      const first = new Pipeline(this.client, { begin, wait, mayPrepare: false });
      await this.#meet(first, parts);
      await first.execute('COMMIT');
    }
    const begin = beginning(mode, parts);
    const pipeline = new Pipeline(this.client, { begin, wait, mayPrepare: !this.#isPooled, isCareful });
    if (this.#isPooled) {
      await this.#meet(pipeline, parts);
    }
    return pipeline;
  }

  /** A pooler tells its clients a number of its own for the process. */
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

/** Throws unless a connection is to the server itself. For what cannot be done in one transaction. */
export async function requireServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ process: number }>('SELECT pg_backend_pid() AS process');
  if (rows[0]?.process !== processOf(client)) {
    throw new LedgerUnavailableError(
      'the options in the URL cannot be used through a pooler here: connect to the server itself',
    );
  }
}

/** What the server has called its process when the client connected. */
function processOf(client: pg.Client): unknown {
  return Reflect.get(client, 'processID');
}

function beginning(mode: string, { settings }: SessionParts): string {
  const values = settings.map(
    ([name, value]) => `set_config(${pg.escapeLiteral(name)}, ${pg.escapeLiteral(value)}, true)`,
  );
  return `BEGIN ${mode}; SELECT ${values.join(', ')}`;
}
