import type { CompiledQuery } from 'kysely';
import { onTestFinished } from 'vitest';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';

/** How an SQLite ledger would answer a query: its steps. */
export function planOf(connection: string, query: Pick<CompiledQuery, 'sql' | 'parameters'>): string[] {
  const database = openSqlite(connection.slice('sqlite://'.length), { readonly: true });
  onTestFinished(() => void database.close());
  const steps = database.prepare(`EXPLAIN QUERY PLAN ${query.sql}`).all(query.parameters);
  return (steps as { detail: string }[]).map(({ detail }) => detail);
}
