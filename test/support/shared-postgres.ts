/** One PostgreSQL for all tests that need no server of their own: vitest starts it before them, and stops it after. */
import pg from 'pg';
import { inject } from 'vitest';
import type { TestProject } from 'vitest/node';
import { startPostgres } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the server is, and a database in it that nobody uses. */
    postgres: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Nothing in it outlives the tests.
  const postgres = await startPostgres(['-c', 'fsync=off', '-c', 'full_page_writes=off']);
  project.provide('postgres', await postgres.createDatabase());
  return () => postgres.remove();
}

/** A database, as `[ledger] connection` has it: empty, or a copy of another one that nobody uses. */
export async function createDatabase(copied?: string): Promise<string> {
  const server = inject('postgres');
  const name = `ledger_${crypto.randomUUID().replaceAll('-', '')}`;
  const client = new pg.Client(server);
  await client.connect();
  try {
    const template = copied === undefined ? '' : ` TEMPLATE ${new URL(copied).pathname.slice(1)}`;
    await client.query(`CREATE DATABASE ${name}${template}`);
  } finally {
    await client.end();
  }
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
