/** A ledger that has lost what it had acknowledged: a standby that lagged and was promoted, a backup that was put in its place. */
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UsageEnforcement } from '../../src/index.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { listLeases } from '../../src/ledger/reports/reports.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { valuesOnly } from '../support/files.ts';
import { DIALECTS, ledgerAt, NO_WAIT, newLedgers, openedLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { createHost } from '../support/requests.ts';
import { endLease, recordLease } from './recorded-leases.ts';

const newLedger = newLedgers();

const names = async (ledger: Ledger) =>
  (await listLeases(ledger, { limit: 9 }, NO_WAIT)).map(({ name }) => name).reverse();

const SUSPENDED = /^nothing is granted: the ledger has gone back: .* run blazar-enforcement ledger reconcile/;

describe.each(DIALECTS)('a ledger on %s that has gone back', (dialect) => {
  /** As if the last of its leases had never been. `id`: the ledger is another one. */
  async function lose(connection: string, transactions: bigint, id: string): Promise<void> {
    const other = await openedLedger(connection);
    const { queries } = other.database;
    await other.transact(
      'budget',
      function* () {
        yield queries.deleteFrom('entries').where('lease', '=', 2n).compile();
        yield queries.deleteFrom('leases').where('id', '=', 2n).compile();
        yield queries
          .updateTable('projects')
          .set((row) => ({ revision: row('revision', '+', transactions) }))
          .compile();
        yield queries
          .updateTable('ledger')
          .set((row) => ({ id: id === '' ? row.ref('id') : id }))
          .compile();
      },
      NO_WAIT,
    );
    await other.close();
  }

  it.each([
    ['that lacks a transaction', -1n, ''],
    ['that is another one, with more transactions,', 9n, 'another'],
  ])('%s grants nothing more, in any process, until it is resumed', async (_, transactions, id) => {
    const connection = await newLedger(dialect);
    const one = await openedLedger(connection);
    const other = await openedLedger(connection);
    const first = await recordLease(one, { name: 'first', leaseId: 'F' });
    await recordLease(one, { name: 'second' });
    await lose(connection, transactions, id);
    await expect(recordLease(one, { name: 'third' })).rejects.toThrow('the ledger has gone back');
    await expect(recordLease(one, { name: 'third' })).rejects.toThrow(SUSPENDED);
    await expect(recordLease(other, { name: 'third' })).rejects.toThrow(SUSPENDED);
    await expect(recordLease(await openedLedger(connection), { name: 'third' })).rejects.toThrow(SUSPENDED);
    expect(await names(other)).toEqual(['first']);
    // What ends, ends.
    expect(await endLease(one, first)).toBe(true);
    await other.resume(NO_WAIT);
    for (const ledger of [one, other]) {
      await recordLease(ledger, { name: `again ${ledger === one}` });
    }
    expect(await names(one)).toEqual(['first', 'again true', 'again false']);
  });

  it('is not confused with transactions that are rolled back or refused', async () => {
    const ledger = await openedLedger(await newLedger(dialect));
    await recordLease(ledger, { name: 'first' });
    const identity = { leaseId: 'nobody', region: '', projectId: 'climate', userId: 'alice' };
    for (let time = 0; time < 3; time += 1) {
      expect(await endLease(ledger, identity)).toBe(false);
    }
    await recordLease(ledger, { name: 'second' });
    expect(await names(ledger)).toEqual(['first', 'second']);
  });
});

it('is noticed by what was acknowledged to any project, when the connection is a new one', async () => {
  const connection = await newLedger('postgresql');
  const ledger = await openedLedger(connection);
  await recordLease(ledger, { name: 'first', projectId: 'one' });
  const other = await openedLedger(connection);
  const { queries } = other.database;
  const lost = queries.updateTable('projects').set({ revision: 0n }).compile();
  await other.transact('budget', () => rows(lost), NO_WAIT);
  // As when a server takes over: nobody keeps a connection.
  const { sql } = await import('kysely');
  const thrownOut = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`.compile(queries);
  await other.read('read', () => rows(thrownOut), NO_WAIT);
  await expect
    .poll(() =>
      recordLease(ledger, { name: 'second', projectId: 'two' }).catch((thrown: unknown) => String(thrown)),
    )
    .toMatch(SUSPENDED_LATER);
  expect(await names(other)).toEqual(['first']);
});

const SUSPENDED_LATER = /nothing is granted: the ledger has gone back/;

describe('a file that is moved over a ledger in use', () => {
  async function replaced(leases: number) {
    const connection = await newLedger('sqlite');
    const file = connection.slice('sqlite://'.length);
    const before = await openedLedger(connection);
    await recordLease(before, { name: 'kept' });
    await before.close();
    copyFileSync(file, `${file}.backup`);
    const ledger = await openedLedger(connection);
    for (let lease = 0; lease < leases; lease += 1) {
      await recordLease(ledger, { name: `lease ${lease}`, projectId: `project ${lease}` });
    }
    renameSync(`${file}.backup`, file);
    return { connection, file, ledger };
  }

  it('is not used with the write-ahead log of another file until that is moved away', async () => {
    const { connection, file, ledger } = await replaced(40);
    for (let attempt = 0; attempt < 4; attempt += 1) {
      await expect(recordLease(ledger, { name: 'new' })).rejects.toThrow(
        attempt === 0 ? 'the file was deleted, replaced or overwritten' : /-wal has changes of another file/,
      );
    }
    await expect(ledgerAt(connection)).rejects.toThrow(/has changes of another file/);
    await expect(names(ledger)).rejects.toThrow(/has changes of another file/);
    renameSync(`${file}-wal`, `${file}-wal.aside`);
    renameSync(`${file}-shm`, `${file}-shm.aside`);
    // It is whole, and does not know of 40 leases.
    await expect(recordLease(ledger, { name: 'new' })).rejects.toThrow('the ledger has gone back');
    await expect(recordLease(ledger, { name: 'new' })).rejects.toThrow(SUSPENDED);
    const next = await openedLedger(connection);
    await expect(recordLease(next, { name: 'new' })).rejects.toThrow(SUSPENDED);
    await next.resume(NO_WAIT);
    await recordLease(next, { name: 'new' });
    await recordLease(ledger, { name: 'newer' });
    expect(await names(next)).toEqual(['kept', 'new', 'newer']);
  });

  it('is used again when the right one is back', async () => {
    const connection = await newLedger('sqlite');
    const file = connection.slice('sqlite://'.length);
    const ledger = await openedLedger(connection);
    await recordLease(ledger, { name: 'first' });
    renameSync(file, `${file}.aside`);
    writeFileSync(file, 'something else'.repeat(1000));
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await expect(recordLease(ledger, { name: 'second' })).rejects.toMatchObject({
        name: 'LedgerUnavailableError',
      });
    }
    rmSync(file);
    renameSync(`${file}.aside`, file);
    await recordLease(ledger, { name: 'second' });
    expect(await names(ledger)).toEqual(['first', 'second']);
  });

  it('is refused for as long as it is damaged', async () => {
    const { connection, file, ledger } = await replaced(0);
    rmSync(`${file}-wal`, { force: true });
    rmSync(`${file}-shm`, { force: true });
    damage(file);
    for (let attempt = 0; attempt < 4; attempt += 1) {
      await expect(recordLease(ledger, { name: 'new' })).rejects.toThrow(
        attempt === 0 ? 'the file was deleted, replaced or overwritten' : 'the file is damaged',
      );
    }
    await expect(ledgerAt(connection).then((next) => recordLease(next, { name: 'new' }))).rejects.toThrow(
      'the file is damaged',
    );
  });
});

it('is refused when an earlier file is copied over the one in use', async () => {
  const connection = await newLedger('sqlite');
  const file = connection.slice('sqlite://'.length);
  const ledger = await openedLedger(connection);
  copyFileSync(file, `${file}.backup`);
  for (let lease = 0; lease < 200; lease += 1) {
    await recordLease(ledger, { name: `lease ${lease}` });
  }
  copyFileSync(`${file}.backup`, file);
  for (const why of [
    'the file was deleted, replaced or overwritten',
    'the file is damaged',
    'the file is damaged',
  ]) {
    await expect(recordLease(ledger, { name: 'new' })).rejects.toThrow(why);
  }
});

it('is refused soon after the start of a service if it is damaged where no lease is', async () => {
  const connection = await newLedger('sqlite');
  damage(connection.slice('sqlite://'.length), 'decisions_by_time');
  const logger = recordingLogger();
  const enforcement = await UsageEnforcement.load(
    valuesOnly({
      ledger: { connection },
      enforcement: { enabled_filters: ['MaxLeasesFilter'], max_leases_per_project: 1_000_000 },
    }),
    { logger },
  );
  onTestFinished(() => enforcement.close());
  const { lease } = createHost({ start_date: '2030-12-01 09:00', end_date: '2030-12-02 09:00' });
  const context = { user_id: 'alice', project_id: 'climate' };
  await expect.poll(async () => (await enforcement.checkCreate({ context, lease })).allowed).toBe(false);
  expect(JSON.stringify(logger.lines)).toContain('the file is damaged: ');
});

/** A page in the middle is lost. */
function damage(file: string, index = 'leases_by_start'): void {
  const connection = openSqlite(file);
  connection.exec('PRAGMA journal_mode = DELETE');
  const [found] = connection
    .prepare('SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name = ?')
    .all([index]);
  const { rootpage: page, page_size: size } = found as { rootpage: number; page_size: number };
  connection.close();
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0, (page - 1) * size, page * size));
}
