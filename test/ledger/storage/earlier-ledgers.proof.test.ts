/** Ledgers that earlier versions of the tables wrote, on both databases, are upgraded to the unit: budgets, leases and charges are as those versions printed them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openSqlite } from '../../../src/ledger/storage/sqlite-driver.ts';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { confFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { runSql } from '../../support/postgres-activity.ts';
import { createDatabase } from '../../support/shared-postgres.ts';

const FOLDER = join(import.meta.dirname, 'earlier');
const PROJECTS = ['climate', 'genome', 'free'];
const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
/** Last migration → what that version printed. */
const EXPECTED = JSON.parse(read('expected.json')) as Record<string, object>;

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

const RESTORE = {
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
    await runSql(connection, read(`${migration}.postgresql.sql`));
    return connection;
  },
};

const CASES = Object.keys(RESTORE).flatMap((database) =>
  Object.keys(EXPECTED).map((migration) => [database as keyof typeof RESTORE, migration] as const),
);

it.each(CASES)('%s: a ledger of %s', async (database, migration) => {
  const connection = await RESTORE[database](migration);
  const conf = confFile(
    `[ledger]\nconnection = ${connection}\n[enforcement]\nenabled_filters = UsageBudgetFilter\n`,
  );
  const run = (...args: readonly string[]) => runProgramInProcess([...args, '--config-file', conf]);
  expect(await run('ledger', 'upgrade')).toMatchObject({ code: 0 });
  expect(await run('ledger', 'verify')).toMatchObject({ code: 0 });
  expect(await shownBudgets(run)).toEqual(EXPECTED[migration]);
  // Nothing is left to do.
  expect(await run('ledger', 'upgrade')).toMatchObject({
    code: 0,
    stdout: expect.not.stringContaining('applied'),
  });
});

async function shownBudgets(
  run: (...args: readonly string[]) => ReturnType<typeof runProgramInProcess>,
): Promise<object> {
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
