/** PostgreSQL ledgers to upgrade, with many leases and an open service. */
import pg from 'pg';
import { onTestFinished } from 'vitest';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { recordLease } from '../ledger/recorded-leases.ts';
import { openedLedger } from './ledgers.ts';

/** The migrations that `goBack` reverts; the first builds an index. */
export const LATEST = ['0010-growth', '0011-sessions', '0012-budget-requests', '0013-calendar-links'];

/** A client that is closed after the test. */
export async function clientOf(connectionString: string, application_name?: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString,
    ...(application_name !== undefined && { application_name }),
  });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** Opens a ledger, and adds this number of ended leases. */
export async function filledLedger(url: string, client: pg.Client, leases: number): Promise<Ledger> {
  const ledger = await openedLedger(url);
  await recordLease(ledger, { name: 'pattern', projectId: 'old' });
  const { rows } = await client.query<{ names: string }>(
    "SELECT string_agg(column_name, ', ') AS names FROM information_schema.columns WHERE table_name = 'leases' AND column_name NOT IN ('id', 'name', 'state', 'ended_at')",
  );
  const names = rows[0]?.names;
  await client.query(
    `INSERT INTO leases (${names}, name, state, ended_at) SELECT ${names}, 'past ' || i, 'ended', starts_at FROM leases, generate_series(1, ${leases}) AS i`,
  );
  return ledger;
}

/** Reverts the tables to those before the latest index. */
export async function goBack(client: pg.Client): Promise<void> {
  await client.query('DROP INDEX leases_by_owner');
  await client.query(
    'DROP TABLE folds, folded_balances, sessions, login_counts, replicas, budget_requests, calendar_links',
  );
  await client.query('DELETE FROM kysely_migration WHERE name = ANY ($1)', [LATEST]);
}
