/**
 * Ledgers that earlier versions of the tables wrote, on both databases, are upgraded to the unit: budgets, leases and charges are as those versions
 * printed them. That both come to the same tables shows that no version between them has changed since it was released.
 */
import { expect, it } from 'vitest';
import { openSqlite } from '../../../src/ledger/storage/sqlite-driver.ts';
import {
  configurationOf,
  PRINTED,
  printedBudgets,
  RESTORE,
  type Restorable,
  runnerOf,
} from '../../support/earlier-ledgers.ts';
import { runSql } from '../../support/postgres-activity.ts';

const TABLES: Record<Restorable, (connection: string) => Promise<unknown>> = {
  SQLite: async (connection) => {
    const database = openSqlite(connection.slice('sqlite://'.length));
    try {
      return database.prepare('SELECT name, sql FROM sqlite_master ORDER BY name').all([]);
    } finally {
      database.close();
    }
  },
  PostgreSQL: (connection) =>
    runSql(
      connection,
      `SELECT table_name || ' ' || column_name AS name, data_type || is_nullable || coalesce(column_default, '') AS sql
         FROM information_schema.columns WHERE table_schema = 'public'
       UNION SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
       UNION SELECT conrelid::regclass || ' ' || conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype <> 'n' ORDER BY 1`,
    ),
};

it.each(['SQLite', 'PostgreSQL'] as const)('%s', async (database) => {
  const tables: unknown[] = [];
  for (const migration of Object.keys(PRINTED)) {
    const connection = await RESTORE[database](migration);
    const run = runnerOf(configurationOf(connection));
    expect(await run('ledger', 'upgrade')).toMatchObject({ code: 0 });
    expect(await run('ledger', 'verify')).toMatchObject({ code: 0 });
    expect(await printedBudgets(run)).toEqual(PRINTED[migration]);
    // Nothing is left to do.
    expect(await run('ledger', 'upgrade')).toMatchObject({
      code: 0,
      stdout: expect.not.stringContaining('applied'),
    });
    tables.push(await TABLES[database](connection));
  }
  const [first, latest] = tables;
  expect(first).toEqual(latest);
});
