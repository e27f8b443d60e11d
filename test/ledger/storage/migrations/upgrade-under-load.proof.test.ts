/** An upgrade of a ledger on PostgreSQL while services decide: they go on, and what is half done is done again. */
import type pg from 'pg';
import { expect, it } from 'vitest';
import type { Ledger } from '../../../../src/ledger/ledger.ts';
import { verifyLedger } from '../../../../src/ledger/reports/verify.ts';
import { NO_WAIT, newLedgers, upgrade } from '../../../support/ledgers.ts';
import { clientOf, filledLedger, goBack, LATEST } from '../../../support/upgrades.ts';
import { recordLease } from '../../recorded-leases.ts';

const newLedger = newLedgers();
const TIMEOUT = 1_200_000;
const ROWS = 20_000;

async function olderLedger(): Promise<{ url: string; ledger: Ledger; client: pg.Client }> {
  const url = await newLedger('postgresql');
  const client = await clientOf(url);
  const ledger = await filledLedger(url, client, ROWS);
  await goBack(client);
  return { url, ledger, client };
}

async function isValid(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ indisvalid: boolean }>(
    "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('leases_by_owner')",
  );
  return rows[0]?.indisvalid === true;
}

it(
  'lets a service record leases while the index is built',
  async () => {
    const { url, ledger, client } = await olderLedger();
    // Somebody who reads for long: the build has to wait until it is over.
    const reader = await clientOf(url);
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await reader.query('SELECT count(*) FROM leases');
    let isOver = false;
    const upgrading = Promise.all([upgrade(url), upgrade(url)]).finally(() => {
      isOver = true;
    });
    const building =
      "SELECT 1 FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting for%' AND datname = current_database()";
    await expect.poll(async () => (await client.query(building)).rowCount, { timeout: 240_000 }).toBe(1);
    for (let count = 0; count < 20; count += 1) {
      await recordLease(ledger, { name: `meanwhile ${count}` });
    }
    expect(isOver).toBe(false);
    await reader.query('COMMIT');
    let recorded = 20;
    for (; !isOver; recorded += 1) {
      await recordLease(ledger, { name: `meanwhile ${recorded}` });
    }
    // Two at once: one of them applies it.
    expect((await upgrading).flat()).toEqual(LATEST);
    expect(await isValid(client)).toBe(true);
    const { rows } = await client.query<{ count: string }>(
      "SELECT count(*) FROM leases WHERE name LIKE 'meanwhile %'",
    );
    expect(Number(rows[0]?.count)).toBe(recorded);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  },
  TIMEOUT,
);

it(
  'builds again what an interrupted upgrade has left, and does not make others wait for a lock',
  async () => {
    const { url, ledger, client } = await olderLedger();
    const reader = await clientOf(url);
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await reader.query('SELECT count(*) FROM leases');
    const interrupted = upgrade(url).then(
      () => 'done',
      () => 'failed',
    );
    const building =
      "SELECT pid FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting for%' AND datname = current_database()";
    await expect
      .poll(async () => (await client.query<{ pid: number }>(building)).rows.length, { timeout: 240_000 })
      .toBe(1);
    await client.query(`SELECT pg_terminate_backend(pid) FROM (${building}) AS it`);
    expect(await interrupted).toBe('failed');
    await reader.query('COMMIT');
    expect(await isValid(client)).toBe(false);
    await recordLease(ledger, { name: 'meanwhile' });

    // A table that somebody holds: the migration gives up its place in the queue, and takes it again.
    await reader.query('BEGIN');
    await reader.query('LOCK TABLE kysely_migration IN SHARE MODE');
    const upgrading = upgrade(url);
    await expect.poll(() => isValid(client), { timeout: 240_000 }).toBe(true);
    const queue =
      "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'kysely_migration'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    for (const waiting of [1, 0, 1]) {
      await expect.poll(async () => (await client.query(queue)).rowCount, { timeout: 240_000 }).toBe(waiting);
    }
    await recordLease(ledger, { name: 'later' });
    await reader.query('COMMIT');
    expect(await upgrading).toEqual(LATEST);
    expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]);
  },
  TIMEOUT,
);
