import { chmodSync, chownSync, existsSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listOutbox, outboxMessage } from '../../../src/ledger/outbox/reports.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import { eventIn } from '../../enforcement/notifications/cloud-events.ts';
import { copiedLedgers } from '../../ledger/recorded-leases.ts';
import { temporaryFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { breakLedger, ledgerAt, NO_WAIT } from '../../support/ledgers.ts';
import { printed, refused } from '../../support/run-command.ts';
import { createDatabase } from '../../support/shared-postgres.ts';
import { commandsOn, fill } from './setup.ts';

const APPLIED =
  'applied 0001-ledger, 0002-alternatives, 0003-position, 0004-follower, 0005-outbox, 0006-views, 0007-decisions, 0008-open-leases, 0010-growth, 0011-sessions, 0012-budget-requests, 0013-calendar-links';

const SERVICE = 65_534;

describe('ledger upgrade', () => {
  it('creates the file and its tables, and then finds them up to date', async () => {
    const file = join(temporaryFolder(), 'ledger.db');
    const { ledger } = commandsOn(`sqlite://${file}`);
    expect(printed(await ledger('upgrade'))).toBe(`${file}: ${APPLIED}\n`);
    expect((await ledger('upgrade')).stdout).toBe(`${file}: is up to date\n`);
    expect((await ledger('list')).code).toBe(0);
  });

  it('creates a file that others cannot read', async () => {
    const file = join(temporaryFolder(), 'ledger.db');
    await commandsOn(`sqlite://${file}`).ledger('upgrade');
    expect(statSync(file).mode & 0o007).toBe(0);
  });

  it.skipIf(process.getuid?.() !== 0)(
    'gives a file that root creates to the owner of its folder, and leaves one that exists or is elsewhere',
    async () => {
      const folder = temporaryFolder();
      chownSync(folder, SERVICE, SERVICE);
      const file = join(folder, 'ledger.db');
      const { ledger } = commandsOn(`sqlite://${file}`);
      await ledger('upgrade');
      expect(statSync(file)).toMatchObject({ uid: SERVICE, gid: SERVICE });

      chownSync(file, 0, 0);
      await ledger('upgrade');
      expect(statSync(file)).toMatchObject({ uid: 0, gid: 0 });

      const elsewhere = join(temporaryFolder(), 'ledger.db');
      symlinkSync(elsewhere, join(folder, 'link.db'));
      await commandsOn(`sqlite://${join(folder, 'link.db')}`).ledger('upgrade');
      expect(statSync(elsewhere)).toMatchObject({ uid: 0, gid: 0 });
    },
  );

  it('does not change tables of a newer version', async () => {
    const connection = `sqlite://${join(temporaryFolder(), 'ledger.db')}`;
    const { ledger } = commandsOn(connection);
    await ledger('upgrade');
    const book = await ledgerAt(connection);
    const sql = "INSERT INTO kysely_migration (name, timestamp) VALUES ('9999-later', 'x')";
    const query = { ...book.database.queries.selectFrom('leases').compile(), sql, parameters: [] };
    await book.transact('commit', () => rows(query), NO_WAIT);
    await book.close();
    for (const command of ['upgrade', 'list']) {
      expect(await ledger(command)).toEqual(
        refused(/^error: .*made by a newer version of this program \(9999-later\)\n$/),
      );
    }
  });

  it('exits with 2 and one line if the file cannot be created', async () => {
    const missing = join(temporaryFolder(), 'missing');
    const text = temporaryFile('ledger.db', 'This is no database, and it is long enough to tell. '.repeat(9));
    for (const [path, why] of [
      [`${missing}/ledger.db`, /^error: .*\[ledger\] connection: the folder .*missing does not exist\n$/],
      [text, /^error: .*file is not a database.*\n$/],
      [temporaryFolder(), /^error: .*cannot be opened: it is a folder\n$/],
    ] as const) {
      expect(await commandsOn(`sqlite://${path}`).ledger('upgrade')).toEqual(refused(why));
    }
    expect(existsSync(missing)).toBe(false);
  });

  it.skipIf(process.getuid?.() === 0)('exits with 2 if the file cannot be written', async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o500);
    expect(await commandsOn(`sqlite://${folder}/ledger.db`).ledger('upgrade')).toEqual(
      refused(/^error: .*cannot be written/),
    );
  });
});

describe('a ledger that cannot be used', () => {
  it('exits with 2 if it does not exist, and names its option and the command that creates it', async () => {
    const { ledger, budget } = commandsOn(`sqlite://${temporaryFolder()}/ledger.db`);
    for (const run of [ledger, budget]) {
      expect(await run('list')).toEqual(
        refused(
          /^error: \S+:\d+: \[ledger\] connection: .*blazar-enforcement ledger upgrade creates a ledger\n$/,
        ),
      );
    }
  });

  it('exits with 3 if the database does not answer, and does not print the password', async () => {
    const { ledger, budget } = commandsOn('postgresql://ledger:hunter2@127.0.0.1:1/ledger');
    for (const run of [() => ledger('upgrade'), () => ledger('verify'), () => budget('list')]) {
      const { code, stdout, stderr } = await run();
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
      expect(stderr).toMatch(/^error: postgresql:\/\/127\.0\.0\.1:1\/ledger: .*ECONNREFUSED.*\n$/);
      expect(stderr).not.toContain('hunter2');
    }
  });

  it('exits with 2 if the server refuses a setting of the URL', async () => {
    const { ledger } = commandsOn(`${await createDatabase()}?options=-c%20work_mem%3Dmuch`);
    for (const command of ['upgrade', 'verify']) {
      expect(await ledger(command)).toEqual(
        refused(
          /^error: \S+:\d+: \[ledger\] connection: .*invalid value for parameter "work_mem": "much"\n$/,
        ),
      );
    }
  });

  it('exits with 2 if the connection is invalid, and does not print the password', async () => {
    const { code, stderr } = await commandsOn('mysql://root:hunter2@db/ledger').ledger('list');
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: .*expected sqlite:\/\/\/path/);
    expect(stderr).not.toContain('hunter2');
  });
});

it('the commands on PostgreSQL create the tables, print their content, reconcile and verify it', async () => {
  const connection = await createDatabase();
  const { ledger, budget } = commandsOn(connection);
  expect(await ledger('list')).toMatchObject({ code: 2, stdout: '' });
  const place = connection.replace(/\/\/.*@/, '//');
  expect(printed(await ledger('upgrade'))).toBe(`${place}: ${APPLIED}\n`);
  expect((await ledger('upgrade')).stdout).toBe(`${place}: is up to date\n`);
  await fill(connection);
  expect((await ledger('list', '--state', 'open')).stdout).toMatch(/^#1 +lease-1 .* open$/m);
  expect((await ledger('show', '#1')).stdout).toMatch(/ create +usage_budget\/1 +24 node-hours /);
  expect((await ledger('export')).stdout.trimEnd().split('\n')).toHaveLength(14);

  const dates = { start_date: '2096-12-01T00:00:00.000000', end_date: '2096-12-05T00:00:00.000000' };
  const list = temporaryFile('leases.json', JSON.stringify([{ id: 'lease-1', name: 'first', ...dates }]));
  const { stdout } = await ledger('reconcile', list);
  expect(stdout).toMatch(/^corrected +#1 +lease-1 /m);
  expect(stdout).toMatch(/^released +#3 .* third /m);
  expect((await budget('show', 'climate')).stdout).toMatch(/^#1 .* first +usage_budget\/1 +96 node-hours /m);
  expect((await ledger('verify')).stdout).toMatch(/^The ledger is consistent: /);
});

const newLedger = copiedLedgers(fill);
const NOTIFICATIONS = '[notifications]\nwebhook_url = http://127.0.0.1:1/hidden';

async function events(connection: string) {
  const ledger = await ledgerAt(connection);
  const found = await listOutbox(ledger, { limit: 100 }, NO_WAIT);
  const messages = await Promise.all(found.map(({ id }) => outboxMessage(ledger, id, NO_WAIT)));
  await ledger.close();
  return messages.map((one) => eventIn(one?.body ?? ''));
}

it('ledger reconcile announces what it has changed, and a dry run nothing', async () => {
  const connection = await newLedger();
  const { ledger } = commandsOn(connection, NOTIFICATIONS);
  const list = temporaryFile('leases.json', '[]');
  await ledger('reconcile', list, '--empty', '--dry-run');
  expect(await events(connection)).toEqual([]);
  const { code, stderr } = await ledger('reconcile', list, '--empty', '--reason', 'monthly');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(await events(connection)).toMatchObject([
    {
      type: 'io.blazar-enforcement.ledger.corrected',
      data: { released: 2, recorded: 0, reason: 'monthly', leases: [{ id: 'lease-1' }, { name: 'third' }] },
    },
  ]);
  await ledger('reconcile', list, '--empty');
  expect(await events(connection)).toHaveLength(1);
});

it('ledger reconcile warns if it cannot announce what it has done', async () => {
  const connection = await newLedger();
  const { ledger } = commandsOn(
    connection,
    NOTIFICATIONS.replace('webhook_url', 'budget_thresholds =\nwebhook_url'),
  );
  breakLedger(connection, 'outbox');
  const list = temporaryFile('leases.json', '[]');
  const { stdout, stderr } = await ledger('reconcile', list, '--empty');
  expect(stdout + stderr).toContain('outbox');
});

it('budget set announces a budget that is made smaller than what is taken', async () => {
  const connection = await newLedger();
  const { budget } = commandsOn(connection, NOTIFICATIONS);
  const years = ['--from', '2026-01-01', '--until', '2098-01-01'];
  const told = await budget('set', 'climate', '--amount', '60', ...years, '--reason', 'less');
  expect(told).toMatchObject({ code: 0, stderr: '' });
  expect(await events(connection)).toMatchObject([
    {
      type: 'io.blazar-enforcement.budget.threshold',
      data: { threshold: 80, cause: 'budget', budget: { amount: '60', taken: '48', left: '12' } },
    },
  ]);
});
