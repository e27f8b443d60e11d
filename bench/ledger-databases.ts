/** The databases of the bench: files in a folder, and a PostgreSQL that the bench starts. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { setBudget } from '../src/ledger/budgets/budgets.ts';
import { openLedger } from '../src/ledger/open.ts';
import { type Connection, type Dialect, parseConnection } from '../src/ledger/storage/connection.ts';
import { upgradeTables } from '../src/ledger/storage/migrations/index.ts';
import { startPostgres } from '../test/support/postgres.ts';

/** Both databases, as a bench names them. */
export const NAMES = { sqlite: 'SQLite', postgresql: 'PostgreSQL' } as const satisfies Record<
  Dialect,
  string
>;
export const DIALECTS = Object.keys(NAMES) as Dialect[];

/** The environment variable that tells the processes of the subjects. */
const VARIABLE = 'BENCH_LEDGERS';

interface Place {
  readonly folder: string;
  /** The server, with a template database for others. */
  readonly postgres: string;
}

interface Databases {
  stop(): Promise<void>;
}

/** Those of all topics. `undefined`: each topic has its own. */
let shared: { databases?: Promise<Databases> } | undefined;

/** Until `stop`, all topics use one server, which loses data in a crash. For numbers that are meaningless. */
export function shareDatabases(): Databases {
  const ours: typeof shared = {};
  shared = ours;
  return {
    async stop() {
      // What did not start has failed its topics.
      await (await ours.databases?.catch(() => undefined))?.stop();
      shared = undefined;
    },
  };
}

/** Starts the server. Subjects may use ledgers while it runs. */
export async function startDatabases(): Promise<Databases> {
  if (shared === undefined) {
    return startServer(['-c', 'max_wal_size=4GB']);
  }
  shared.databases ??= startServer(['-c', 'fsync=off', '-c', 'full_page_writes=off']);
  await shared.databases;
  return { async stop() {} };
}

async function startServer(flags: readonly string[]): Promise<Databases> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-ledgers-'));
  const server = await startPostgres(flags);
  const place: Place = { folder, postgres: await server.createDatabase() };
  process.env[VARIABLE] = JSON.stringify(place);
  return {
    async stop() {
      await server.remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const PROJECT = 'climate';
/** A stopped clock: no lease starts or ends during a measurement. */
export const CLOCK = { now: () => new Date('2026-11-21T00:00:00Z') };
export const NO_WAIT = { signal: undefined, throwIfOver() {} };

/** The `[ledger] connection` of a new ledger, with a budget that is never used up. */
export async function newLedger(dialect: Dialect): Promise<string> {
  const { folder, postgres } = JSON.parse(process.env[VARIABLE] ?? '{}') as Place;
  const name = `ledger_${randomUUID().replaceAll('-', '')}`;
  const url = new URL(postgres);
  url.pathname = `/${name}`;
  const connection = dialect === 'sqlite' ? `sqlite://${folder}/${name}.db` : url.href;
  if (dialect === 'postgresql') {
    const client = new pg.Client({ connectionString: postgres });
    await client.connect();
    await client.query(`CREATE DATABASE ${name}`);
    await client.end();
  }
  await makeLedger(connection, PROJECT);
  return connection;
}

/** Creates a ledger with a budget for each project that is never used up. */
export async function makeLedger(connection: string, ...projectIds: readonly string[]): Promise<void> {
  await upgradeTables(parsed(connection));
  const options = { connection, commit: 'check', timeout: 60, pool_size: 1 } as const;
  const { ledger } = openLedger(options, { clock: CLOCK, observer: undefined });
  const budget = { userId: null, validFrom: 0n, validUntil: 10n ** 10n, amount: 2n ** 62n };
  for (const projectId of projectIds) {
    await setBudget(ledger, { ...budget, projectId }, { who: 'bench', reason: null }, NO_WAIT);
  }
  await ledger.close();
}

export function parsed(connection: string): Connection {
  const known = parseConnection(connection);
  if (known === undefined) {
    throw new Error(`expected a connection, got ${connection}`);
  }
  return known;
}
