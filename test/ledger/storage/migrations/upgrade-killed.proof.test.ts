/** `ledger upgrade` of the first tables that is killed in the middle: the ledger is as before, and the next upgrade does all of it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openSqlite } from '../../../../src/ledger/storage/sqlite-driver.ts';
import {
  configurationOf,
  PRINTED,
  printedBudgets,
  RESTORE,
  type Run,
  runnerOf,
} from '../../../support/earlier-ledgers.ts';
import { upgrade as upgradeTables } from '../../../support/ledgers.ts';
import { runSql } from '../../../support/postgres-activity.ts';
import { startProxy } from '../../../support/postgres-proxy.ts';
import { COMMAND } from '../../../support/run-command.ts';
import { clientOf } from '../../../support/upgrades.ts';

const FIRST = '0001-ledger';
const MIGRATIONS = 'SELECT name FROM kysely_migration';
const SOON = { timeout: 240_000, interval: 1 };
/** What an upgrade of so many leases writes does not fit into the memory of SQLite: it is seen in the file. */
const LEASES = 20_000;
const MIDDLE = 1024 * 1024;

function startUpgrade(configuration: string) {
  const child = spawn(process.execPath, [COMMAND, 'ledger', 'upgrade', '--config-file', configuration], {
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  onTestFinished(() => void child.kill('SIGKILL'));
  return {
    isOver: () => child.exitCode !== null,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function expectWhole(run: Run): Promise<void> {
  expect(await run('ledger', 'upgrade')).toMatchObject({ code: 0, stdout: expect.stringContaining('0010') });
  expect(await run('ledger', 'verify')).toMatchObject({ code: 0 });
  expect(await printedBudgets(run)).toEqual(PRINTED[FIRST]);
}

it('on SQLite', { timeout: 1_200_000 }, async () => {
  for (;;) {
    const connection = await RESTORE.SQLite(FIRST);
    const file = connection.slice('sqlite://'.length);
    const withFile = <Result>(work: (database: ReturnType<typeof openSqlite>) => Result) => {
      const database = openSqlite(file);
      try {
        return work(database);
      } finally {
        database.close();
      }
    };
    const columns =
      'region, project_id, user_id, name, starts_at, ends_at, demand, claims, revision, recorded_at, ended_at';
    const copied = columns.replace('project_id', "'past'");
    withFile((database) =>
      database.exec(
        `WITH RECURSIVE copy (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < ${LEASES})
         INSERT INTO leases (${columns}, state) SELECT ${copied}, 'ended' FROM copy, (SELECT * FROM leases LIMIT 1)`,
      ),
    );
    const configuration = configurationOf(connection);
    const upgrade = startUpgrade(configuration);
    const written = () => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    await vi.waitUntil(() => written() > MIDDLE || upgrade.isOver(), SOON);
    await upgrade.kill();
    // It may have been faster, on a machine that stood still meanwhile: then once more.
    if (withFile((database) => database.prepare(MIGRATIONS).all([])).length === 1) {
      await expectWhole(runnerOf(configuration));
      return;
    }
  }
});

it('on PostgreSQL', { timeout: 1_200_000 }, async () => {
  const connection = await RESTORE.PostgreSQL(FIRST);
  const configuration = configurationOf(connection);
  // Somebody reads: the migration that drops an index of budgets waits, after others in the same transaction.
  const reader = await clientOf(connection);
  await reader.query('BEGIN');
  await reader.query('LOCK TABLE budgets IN ACCESS SHARE MODE');
  const upgrade = startUpgrade(configuration);
  const waiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND relation IN ('budgets'::regclass, 'budgets_by_project'::regclass)
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  await vi.waitFor(async () => expect(await runSql(connection, waiting)).not.toEqual([]), SOON);
  await upgrade.kill();
  await reader.query('COMMIT');
  expect(await runSql(connection, MIGRATIONS)).toEqual([{ name: FIRST }]);
  await expectWhole(runnerOf(configuration));
});

it('on a PostgreSQL that stops answering', { timeout: 1_200_000 }, async () => {
  const moments = ['server_encoding', 'advisory', 'create index', 'kysely_migration', 'lock_timeout'];
  const interrupted = await Promise.all(
    moments.map(async (moment) => {
      const connection = await RESTORE.PostgreSQL(FIRST);
      const proxy = await startProxy(`${connection}?connect_timeout=5`);
      proxy.cutAt(moment);
      // Without an end, the test would have none.
      const limit = new Promise((resolve) => setTimeout(resolve, 240_000, 'it waits').unref());
      const upgrade = upgradeTables(proxy.connection).catch((thrown: unknown) => String(thrown));
      return { connection, outcome: await Promise.race([upgrade, limit]) };
    }),
  );
  for (const { connection, outcome } of interrupted) {
    expect(outcome).toMatch(/the server no longer answers/);
    await expectWhole(runnerOf(configurationOf(connection)));
  }
});
