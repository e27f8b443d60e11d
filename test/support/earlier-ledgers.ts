/** Ledgers from earlier versions of the tables, and the output of these versions. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Kysely, Migrator } from 'kysely';
import { expect } from 'vitest';
import { serverAt } from '../../src/ledger/storage/migrations/concurrent-indexes.ts';
import { migrations } from '../../src/ledger/storage/migrations/versions.ts';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { runProgramInProcess } from './command-in-process.ts';
import { confFile, projectFile } from './files.ts';
import { temporaryFolder } from './filter-folder.ts';
import { runSql } from './postgres-activity.ts';
import { createDatabase } from './shared-postgres.ts';

const PROJECTS = ['climate', 'genome', 'free'];
const read = (name: string) => readFileSync(join(projectFile('test/ledger/storage/earlier'), name), 'utf8');

/** The output of a version, by its last migration. */
export const PRINTED = JSON.parse(read('expected.json')) as Record<string, object>;

/** Creates a ledger. Returns its connection. */
export const RESTORE = {
  SQLite: async (migration: string) => {
    const file = join(temporaryFolder(), 'ledger.db');
    const database = openSqlite(file);
    database.exec(read(`${migration}.sqlite.sql`));
    database.exec('PRAGMA journal_mode = WAL');
    database.close();
    return `sqlite://${file}`;
  },
  PostgreSQL: async (migration: string) => {
    const connection = await createDatabase();
    if (migration === '0001-ledger') {
      await makeFirst(connection);
    } else {
      await runSql(connection, read(`${migration}.postgresql.sql`));
    }
    return connection;
  },
};

/** The first version wrote the same rows on both databases: only one dump is stored. */
async function makeFirst(connection: string): Promise<void> {
  const database = new Kysely<unknown>({ dialect: serverAt(connection).dialect });
  const getMigrations = async () => migrations('postgresql');
  const { error } = await new Migrator({ db: database, provider: { getMigrations } }).migrateTo(
    '0001-ledger',
  );
  await database.destroy();
  expect(error).toBeUndefined();
  const inserts = read('0001-ledger.sqlite.sql').match(/^INSERT INTO (?!kysely_).*$/gm) ?? [];
  await runSql(connection, inserts.join('\n').replaceAll(' VALUES(', ' OVERRIDING SYSTEM VALUE VALUES('));
}

export type Restorable = keyof typeof RESTORE;

interface Shown {
  readonly budgets: readonly {
    readonly user_id: string | null;
    readonly amount: { readonly amount: string };
    readonly taken: { readonly amount: string };
  }[];
  readonly leases: readonly {
    readonly lease_id: string | null;
    readonly state: string;
    readonly start: string;
    readonly end: string;
    readonly charges: readonly { readonly account: string; readonly amount: string }[];
  }[];
}

/** The path of a configuration with that ledger. */
export function configurationOf(connection: string): string {
  return confFile(
    `[ledger]\nconnection = ${connection}\n[enforcement]\nenabled_filters = UsageBudgetFilter\n`,
  );
}

export type Run = (...args: readonly string[]) => ReturnType<typeof runProgramInProcess>;

export function runnerOf(configuration: string): Run {
  return (...args) => runProgramInProcess([...args, '--config-file', configuration]);
}

/** In the format of `PRINTED`. */
export async function printedBudgets(run: Run): Promise<object> {
  const budgets: object[] = [];
  const leases: object[] = [];
  for (const project of PROJECTS) {
    const { stdout } = await run('budget', 'show', project, '--format', 'json');
    const shown = JSON.parse(stdout) as Shown;
    for (const { user_id, amount, taken } of shown.budgets) {
      budgets.push({ project, user: user_id, amount: amount.amount, taken: taken.amount });
    }
    for (const { lease_id, state, start, end, charges } of shown.leases) {
      const charged = charges.map(({ account, amount }) => `${account} ${amount}`).sort();
      leases.push({ lease: lease_id, project, state, start, end, charges: charged });
    }
  }
  const idOf = (lease: object) => String('lease' in lease && lease.lease);
  return { budgets, leases: leases.sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1)) };
}
