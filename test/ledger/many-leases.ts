/** A ledger in a file with very many leases, whose balances agree with its entries. */
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { ledgerAt } from '../support/ledgers.ts';
import { recordLease } from './recorded-leases.ts';

/** Leases of a project; each is of a user of its own. */
const IN_PROJECT = 50;

/** So many open leases more, and more accounts than leases. */
export async function recordMany(connection: string, leases: number): Promise<void> {
  const ledger = await ledgerAt(connection);
  await recordLease(ledger, { name: 'pattern', projectId: 'pattern', userId: 'pattern-user' });
  await ledger.close();
  const database = openSqlite(connection.slice('sqlite://'.length));
  const columns = (table: string) =>
    database
      .prepare(`SELECT name FROM pragma_table_info('${table}') WHERE name <> 'id'`)
      .all([])
      .map((row) => (row as { name: string }).name);
  const multiply = (table: string, others: Readonly<Record<string, string>>, from: string) => {
    const names = columns(table);
    const values = names.map((name) => others[name] ?? `pattern.${name}`);
    database.exec(`INSERT INTO ${table} (${names.join(', ')}) SELECT ${values.join(', ')} FROM ${from}`);
  };
  database.exec('BEGIN');
  database.exec(
    `CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${leases}) SELECT i FROM n`,
  );
  const projects = `'project-' || (i / ${IN_PROJECT})`;
  const named = (column: string) => `replace(pattern.${column}, 'pattern-user', 'user-' || i)`;
  multiply(
    'leases',
    { project_id: projects, user_id: "'user-' || i", claims: named('claims'), name: "'lease ' || i" },
    'numbers, leases AS pattern WHERE pattern.id = 1',
  );
  multiply(
    'entries',
    { project_id: projects, account: named('account'), lease: 'i + 1' },
    'numbers, entries AS pattern WHERE pattern.lease = 1',
  );
  database.exec(
    "INSERT INTO accounts (project_id, name, balance) SELECT project_id, account, sum(delta) FROM entries WHERE project_id <> 'pattern' GROUP BY project_id, account",
  );
  database.exec('COMMIT');
  database.close();
}
