/** One PostgreSQL shared by all tests without a server of their own, started and stopped by vitest. */
import pg from 'pg';
import { inject } from 'vitest';
import type { TestProject } from 'vitest/node';
import { startPostgres } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The server, with a database in it that is not used. */
    postgres: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // No data outlives the tests.
  const postgres = await startPostgres(['-c', 'fsync=off', '-c', 'full_page_writes=off']);
  project.provide('postgres', await postgres.createDatabase());
  return () => postgres.remove();
}

/** The `[ledger] connection` of a new database: empty, or a copy of an unused one. */
export function createDatabase(copied?: string): Promise<string> {
  return createDatabaseWith(copied === undefined ? '' : `TEMPLATE ${new URL(copied).pathname.slice(1)}`);
}

/** The same, with options of `CREATE DATABASE`. */
export async function createDatabaseWith(options: string): Promise<string> {
  const server = inject('postgres');
  const name = `ledger_${crypto.randomUUID().replaceAll('-', '')}`;
  const client = new pg.Client(server);
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${name} ${options}`);
  } finally {
    await client.end();
  }
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
