/** Several upgrades of a ledger on PostgreSQL at once, some of them killed, while a service decides: what the last one leaves is whole. */
import { connect } from 'node:net';
import type pg from 'pg';
import { expect, it } from 'vitest';
import type { Ledger } from '../../../../src/ledger/ledger.ts';
import { verifyLedger } from '../../../../src/ledger/reports/verify.ts';
import { NO_WAIT, newLedgers, upgrade } from '../../../support/ledgers.ts';
import { hasPgBouncer, startPgBouncer } from '../../../support/pgbouncer.ts';
import { startTcpService } from '../../../support/services.ts';
import { clientOf, filledLedger, goBack, LATEST } from '../../../support/upgrades.ts';
import { recordLease } from '../../recorded-leases.ts';

const newLedger = newLedgers();
const TIMEOUT = 1_200_000;
const UPGRADES = 6;
/** Those that are left must do it. */
const MOST_KILLED = UPGRADES - 2;
const ROWS = 5000;
/** Of a pooler: two for the upgrade that works, the others for whoever waits. */
const CONNECTIONS = 4;

/** What a connection does that is to be cut; the third holds the lock of its upgrade, the last but one is any, the last is none. */
const MOMENTS = ['create index', 'drop index', 'pg_settings', 'kysely_migration', '', undefined];
/** Each moment, with and without what an interrupted upgrade leaves. */
const ROUNDS = [false, true].flatMap((isHalf) => MOMENTS.map((moment) => ({ isHalf, moment })));

const onlooker = (url: string) => clientOf(url, 'onlooker');

/** A ledger with a service; upgrades reach it in some way. */
class Ground {
  readonly url: string;
  recorded = 0;
  readonly #client: pg.Client;
  readonly #reader: pg.Client;
  readonly #ledger: Ledger;

  private constructor(url: string, ledger: Ledger, clients: pg.Client[]) {
    this.url = url;
    this.#ledger = ledger;
    [this.#client, this.#reader] = clients as [pg.Client, pg.Client];
  }

  static async open(reached: (direct: string) => Promise<string>): Promise<Ground> {
    const direct = await newLedger('postgresql');
    const url = await reached(direct);
    const client = await onlooker(direct);
    // Not through the pooler: it may be given a connection that is just being cut.
    const ledger = await filledLedger(direct, client, ROWS);
    return new Ground(url, ledger, [client, await onlooker(direct)]);
  }

  /** To the version before. `isHalf`: with what an interrupted upgrade leaves. */
  async goBack(isHalf: boolean): Promise<void> {
    await goBack(this.#client);
    if (isHalf) {
      await this.#rows('CREATE INDEX leases_by_owner ON leases (region, user_id, id)');
      await this.#rows(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'leases_by_owner'::regclass",
      );
    }
  }

  /** Somebody reads for long: a build has to wait until `leave` is called. */
  async read(): Promise<() => Promise<unknown>> {
    await this.#reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await this.#reader.query('SELECT count(*) FROM leases');
    return () => this.#reader.query('COMMIT');
  }

  async isBuilding(): Promise<boolean> {
    const working = "state = 'active' AND query ILIKE '%index concurrently%'";
    return (await this.#rows(`SELECT 1 ${OF_UPGRADES} AND ${working}`)).length > 0;
  }

  /** Whether an upgrade has the lock, and has looked at which indexes there are. */
  async isLooking(): Promise<boolean> {
    const found = await this.#rows(
      `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND EXISTS (
         SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'select%indisvalid%' AND pid <> pg_backend_pid())`,
    );
    return found.length > 0;
  }

  async record(): Promise<void> {
    await recordLease(this.#ledger, { name: `meanwhile ${this.recorded}` });
    this.recorded += 1;
  }

  /** Somebody has a lock of the table, as VACUUM or who records a lease does, until `leave` is called. */
  async occupy(mode: 'SHARE UPDATE EXCLUSIVE' | 'ROW EXCLUSIVE'): Promise<() => Promise<unknown>> {
    await this.#reader.query('BEGIN');
    await this.#reader.query(`LOCK TABLE leases IN ${mode} MODE`);
    return () => this.#reader.query('COMMIT');
  }

  /** How many wait for a lock of the table. */
  async waiting(): Promise<number> {
    const found = await this.#rows(
      "SELECT 1 FROM pg_locks WHERE relation = 'leases'::regclass AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    );
    return found.length;
  }

  /** Cuts off one who is doing it. Returns how many that were. */
  async cutOff(moment: string): Promise<number> {
    const found = await this.#rows(
      `SELECT pg_terminate_backend(pid) FROM (SELECT pid ${OF_UPGRADES}
         AND query ILIKE '%${moment}%' AND query NOT ILIKE '%projects%' LIMIT 1) AS one`,
    );
    return found.length;
  }

  /** Which indexes of that name there are, and whether each can be used. */
  async indexes(): Promise<boolean[]> {
    const found = await this.#rows<{ indisvalid: boolean }>(
      "SELECT indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relname LIKE 'leases_by_owner%'",
    );
    return found.map(({ indisvalid }) => indisvalid);
  }

  async verify(): Promise<void> {
    const kept = await this.#rows("SELECT 1 FROM leases WHERE name LIKE 'meanwhile %'");
    expect(kept).toHaveLength(this.recorded);
    expect((await verifyLedger(this.#ledger, NO_WAIT)).differences).toEqual([]);
    // Upgrades that wait for each other would end each other.
    expect(
      await this.#rows('SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()'),
    ).toEqual([{ deadlocks: 0 }]);
  }

  async #rows<Row extends pg.QueryResultRow>(statement: string): Promise<Row[]> {
    return (await this.#client.query<Row>(statement)).rows;
  }
}

const OF_UPGRADES = `FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'onlooker'
  AND state <> 'idle'`;

it.each([
  ['', async (direct: string) => direct, true],
  [' through a pooler', (direct: string) => startPgBouncer(direct, CONNECTIONS), hasPgBouncer()],
])(
  'ends%s with a whole index, whoever of them is killed',
  async (_, reached, isHere) => {
    if (!isHere) {
      return;
    }
    const fixture = await Ground.open(reached);
    for (const { isHalf, moment } of ROUNDS) {
      await fixture.goBack(isHalf);
      const leave = await fixture.read();
      let running = UPGRADES;
      const ended = Promise.allSettled(
        Array.from({ length: UPGRADES }, () =>
          upgrade(fixture.url).finally(() => {
            running -= 1;
          }),
        ),
      );
      await expect.poll(() => fixture.isBuilding(), { timeout: 240_000 }).toBe(true);
      for (let count = 0; count < 5; count += 1) {
        await fixture.record();
      }
      await leave();
      let killed = 0;
      while (running > 0) {
        await fixture.record();
        if (moment !== undefined && killed < MOST_KILLED) {
          killed += await fixture.cutOff(moment);
        }
      }
      const outcomes = await ended;
      const applied = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : []));
      const failures = outcomes.filter(({ status }) => status === 'rejected');
      const what = JSON.stringify({ isHalf, moment, killed, outcomes });
      expect(failures.length, what).toBeLessThanOrEqual(killed);
      expect(await fixture.indexes(), what).toEqual([true]);
      // Who was cut off after the commit was not told.
      expect([LATEST, ...(killed > 0 ? [[]] : [])], what).toContainEqual(applied);
    }
    await fixture.verify();
  },
  TIMEOUT,
);

it('waits for a statement of a killed upgrade that waits for its lock', async () => {
  const fixture = await Ground.open(async (direct) => direct);
  await fixture.goBack(false);
  const leave = await fixture.occupy('SHARE UPDATE EXCLUSIVE');
  // What the server goes on with: the upgrade itself is gone.
  const left = await onlooker(fixture.url);
  const building = left.query('CREATE INDEX CONCURRENTLY leases_by_owner ON leases (region, user_id, id)');
  await expect.poll(() => fixture.waiting()).toBe(1);
  const next = upgrade(fixture.url);
  await expect
    .poll(async () => (await fixture.isLooking()) || (await fixture.waiting()) > 1, { timeout: 240_000 })
    .toBe(true);
  await leave();
  await building;
  expect(await next).toEqual(LATEST);
  expect(await fixture.indexes()).toEqual([true]);
  await fixture.verify();
});

/** A way to the database that holds the first build of an index back until another upgrade has looked which indexes there are. */
async function startHolding(connection: string) {
  const { port: target, hostname } = new URL(connection);
  let letGo: (() => void) | undefined;
  let looks = 0;
  const { port } = await startTcpService((client) => {
    const server = connect(Number(target), hostname);
    let isLooking = false;
    client.on('data', (bytes) => {
      if (letGo === undefined && bytes.includes('create index concurrently')) {
        letGo = () => server.write(bytes);
        return;
      }
      isLooking = letGo !== undefined && bytes.includes('indisvalid') && bytes.includes('leases_by_owner');
      server.write(bytes);
    });
    server.on('data', (bytes) => {
      client.write(bytes);
      if (isLooking) {
        isLooking = false;
        looks += 1;
        if (looks === 1) {
          letGo?.();
        }
      }
    });
    server.on('error', () => {});
    server.on('close', () => client.destroy());
    client.on('close', () => server.destroy());
  });
  const through = new URL(connection);
  through.port = String(port);
  through.searchParams.set('sslmode', 'disable');
  return { connection: through.href, isHolding: () => letGo !== undefined, looks: () => looks };
}

it('builds nothing beside a statement that an upgrade has sent just before it lost its lock', async () => {
  const fixture = await Ground.open(async (direct) => direct);
  await fixture.goBack(false);
  const { connection, isHolding, looks } = await startHolding(fixture.url);
  // The first build waits for it; a second one would wait for the first, which waits for whoever waits.
  const leave = await fixture.occupy('ROW EXCLUSIVE');
  const first = upgrade(connection);
  await expect.poll(isHolding, { timeout: 240_000 }).toBe(true);
  expect(await fixture.cutOff('pg_settings')).toBe(1);
  const second = upgrade(connection);
  await expect
    .poll(async () => looks() > 1 || (await fixture.waiting()) > 0, { timeout: 240_000 })
    .toBe(true);
  await leave();
  expect(await Promise.all([first, second])).toEqual([[], LATEST]);
  expect(await fixture.indexes()).toEqual([true]);
  await fixture.verify();
});

it('stops when it has lost its lock, and begins again after the other one', async () => {
  const fixture = await Ground.open(async (direct) => direct);
  await fixture.goBack(false);
  const leave = await fixture.read();
  const first = upgrade(fixture.url);
  await expect.poll(() => fixture.isBuilding(), { timeout: 240_000 }).toBe(true);
  expect(await fixture.cutOff('pg_settings')).toBe(1);
  const second = upgrade(fixture.url);
  await expect.poll(() => fixture.isLooking(), { timeout: 240_000 }).toBe(true);
  await leave();
  expect(await Promise.all([first, second])).toEqual([[], LATEST]);
  expect(await fixture.indexes()).toEqual([true]);
  await fixture.verify();
});
