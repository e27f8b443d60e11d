/** Transactions in PostgreSQL that wait for each other. */
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { SYSTEM_CLOCK } from '../../../src/filter/services.ts';
import { Ledger } from '../../../src/ledger/ledger.ts';
import { listLeases } from '../../../src/ledger/reports/reports.ts';
import { verifyLedger } from '../../../src/ledger/reports/verify.ts';
import { PostgresDatabase } from '../../../src/ledger/storage/postgres/postgres.ts';
import { NO_WAIT, newLedgers } from '../../support/ledgers.ts';
import { runSql } from '../../support/postgres-activity.ts';
import { endLease, recordLease } from '../recorded-leases.ts';

const newLedger = newLedgers();
/** Parts of a group may take as long as a busy machine needs. */
const UNHURRIED = { members: 64, milliseconds: 60_000, characters: 1024 * 1024 };

async function newGround(services: number) {
  const connection = await newLedger('postgresql');
  // In which the other one comes to wait, however busy the machine is.
  await runSql(
    connection,
    `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''5s''', current_database()); END $$`,
  );
  const ledgers = Array.from({ length: services }, () => {
    const database = new PostgresDatabase(connection, { poolSize: 4, timeout: 60 }, UNHURRIED);
    return new Ledger(database, { clock: SYSTEM_CLOCK, timeout: 60, observer: undefined });
  });
  onTestFinished(async () => {
    await Promise.all(ledgers.map((one) => one.close()));
  });
  const deadlocks = async () => {
    const sql = 'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()';
    const [row] = (await runSql(connection, sql)) as [{ deadlocks: string }];
    return Number(row.deadlocks);
  };
  const waiting = async () =>
    (
      await runSql(
        connection,
        `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
      )
    ).length;
  return { connection, ledgers, deadlocks, waiting };
}

it('never happens to services that lock the same projects, whatever order they name them in', async () => {
  const { ledgers, deadlocks } = await newGround(2);
  const projects = Array.from({ length: 8 }, (_, index) => `project ${index}`);
  const orders = [projects, projects.toReversed()];
  await Promise.all(
    ledgers.flatMap((ledger, service) =>
      Array.from({ length: 30 }, async (_, turn) => {
        await ledger.transact(
          'reconcile',
          function* (it) {
            yield* it.lockAll(ledger.database, orders[service] ?? []);
          },
          NO_WAIT,
        );
        const projectId = projects[turn % projects.length] ?? '';
        await recordLease(ledger, { projectId, name: `run ${service} ${turn}` });
      }),
    ),
  );
  const [ledger] = ledgers;
  expect(await listLeases(ledger as NonNullable<typeof ledger>, { limit: 100 }, NO_WAIT)).toHaveLength(60);
  expect(await deadlocks()).toBe(0);
});

it('refuses nobody when the database has ended a group because of one', async () => {
  const {
    connection,
    ledgers: [ledger],
    deadlocks,
    waiting,
  } = await newGround(1);
  if (ledger === undefined) {
    throw new Error('expected a ledger');
  }
  const leases = [];
  for (const leaseId of ['A', 'B', 'C']) {
    leases.push(await recordLease(ledger, { leaseId, name: leaseId }));
  }
  // Somebody who changes leases of all projects, and has the last one first.
  const other = new pg.Client(connection);
  await other.connect();
  onTestFinished(() => other.end());
  await other.query(`SET deadlock_timeout = '1h'`);
  const touch = (id: string) => other.query('UPDATE leases SET touched_at = 1 WHERE lease_id = $1', [id]);
  await other.query('BEGIN');
  await touch('C');
  const ends = leases.map((identity) => endLease(ledger, identity));
  await expect.poll(waiting).toBe(1);
  await touch('A');
  await other.query('COMMIT');
  expect(await Promise.all(ends)).toEqual([true, true, true]);
  await expect.poll(deadlocks).toBe(1);
  expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
});
