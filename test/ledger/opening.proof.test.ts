/** How a ledger comes to its tables, and what is said where there are none that can be used. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { ChainLedger } from '../../src/ledger/service.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { confFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { connectionOf, DIALECTS, NO_WAIT, newLedgers, upgrade } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { COMMAND } from '../support/run-command.ts';
import { createDatabase } from '../support/shared-postgres.ts';
import { unusedPort } from '../support/unused-port.ts';

const MIGRATIONS = [
  '0001-ledger',
  '0002-alternatives',
  '0003-position',
  '0004-follower',
  '0005-outbox',
  '0006-views',
  '0007-decisions',
  '0008-open-leases',
  '0010-growth',
  '0011-sessions',
  '0012-budget-requests',
  '0013-calendar-links',
];

const newLedger = newLedgers();

const withSetting = (setting: string) => (url: URL) =>
  Object.assign(url, { search: `options=-c%20${setting}` });

describe.each(DIALECTS)('a ledger on %s', (dialect) => {
  it('is created once, however often it is upgraded', async () => {
    const url = await newLedger(dialect);
    await run(url, ['DROP TABLE kysely_migration', ...TABLES.map((name) => `DROP TABLE ${name}`)]);
    expect(await upgrade(url)).toEqual(MIGRATIONS);
    expect(await upgrade(url)).toEqual([]);
    expect(await openingOf(url)).toBe('open');
  });

  it('is not opened before it is created', async () => {
    const url = await newLedger(dialect);
    const place = placeOf(url);
    const message = `${place} holds no ledger: blazar-enforcement ledger upgrade makes one`;
    await run(url, ['DELETE FROM kysely_migration']);
    expect(await openingOf(url)).toEqual([message]);
    await run(url, ['DROP TABLE kysely_migration']);
    expect(await openingOf(url)).toEqual([message]);
  });

  it('is neither opened nor upgraded when it is newer than the program', async () => {
    const url = await newLedger(dialect);
    await run(url, ["INSERT INTO kysely_migration VALUES ('0099-from-the-future', '2030')"]);
    const place = placeOf(url);
    const message = `the ledger in ${place} was made by a newer version of this program (0099-from-the-future)`;
    expect(await openingOf(url)).toEqual([message]);
    await expect(upgrade(url)).rejects.toMatchObject({ name: 'LedgerUnavailableError' });
    expect(await openingOf(url)).toEqual([message]);
  });

  it('is created as a whole, or not at all', async () => {
    const url = await newLedger(dialect);
    const [last = ''] = TABLES;
    // The last of its tables is somebody else's.
    await run(url, [
      'DELETE FROM kysely_migration',
      ...TABLES.map((name) => `DROP TABLE ${name}`),
      `CREATE TABLE ${last} (id integer)`,
    ]);
    await expect(upgrade(url)).rejects.toMatchObject({ name: 'LedgerUnavailableError' });
    await run(url, [`DROP TABLE ${last}`]);
    expect(await upgrade(url)).toEqual(MIGRATIONS);
    expect(await openingOf(url)).toBe('open');
  });
});

describe('a ledger in a file', () => {
  it('is not opened when the file does not exist, and no file is created', async () => {
    const file = join(temporaryFolder(), 'ledger.db');
    expect(await openingOf(`sqlite://${file}`)).toEqual([
      `${file} cannot be opened: the file does not exist; blazar-enforcement ledger upgrade creates a ledger`,
    ]);
    expect(existsSync(file)).toBe(false);
  });

  it('is not opened when the file is something else', async () => {
    const file = join(temporaryFolder(), 'ledger.db');
    writeFileSync(
      file,
      'This is a text, and one that is long enough to be taken for something else.'.repeat(100),
    );
    expect(await openingOf(`sqlite://${file}`)).toEqual([`${file} cannot be opened: file is not a database`]);
    mkdirSync(`${file}.folder`);
    expect(await openingOf(`sqlite://${file}.folder`)).toEqual([expect.stringMatching(/cannot be opened/)]);
  });

  it('is not called missing if the user may not read it', async () => {
    const url = await newLedger('sqlite');
    const conf = confFile(`[ledger]\nconnection = ${url}\n[enforcement]\nenabled_filters =\n`);
    chmodSync(url.slice('sqlite://'.length), 0);
    // Root may read every file unless it gives up that right.
    const rights = '--bounding-set=-dac_override,-dac_read_search';
    const withoutRights = process.getuid?.() === 0 ? ['setpriv', rights] : [];
    const [command = '', ...rest] = [...withoutRights, process.execPath, COMMAND, 'ledger', 'list'];
    const { status, stderr } = spawnSync(command, [...rest, '--config-file', conf], { encoding: 'utf8' });
    expect(stderr).toMatch(/cannot be opened: permission denied; run the command as the user/);
    expect(stderr).not.toContain('creates a ledger');
    expect(status).toBe(2);
  });

  it('cannot be created in a folder that does not exist', async () => {
    await expect(upgrade(`sqlite://${temporaryFolder()}/missing/ledger.db`)).rejects.toMatchObject({
      name: 'LedgerUnavailableError',
    });
  });

  it('is not created in a file that is something else', async () => {
    const file = join(temporaryFolder(), 'ledger.db');
    writeFileSync(file, 'This is a text.'.repeat(1000));
    await expect(upgrade(`sqlite://${file}`)).rejects.toMatchObject({
      name: 'LedgerUnavailableError',
    });
  });

  it('is as durable as SQLite makes it', async () => {
    const url = await newLedger('sqlite');
    const reader = openSqlite(url.slice('sqlite://'.length));
    expect(reader.prepare('PRAGMA journal_mode').all([])).toEqual([{ journal_mode: 'wal' }]);
    reader.close();
  });
});

describe('a ledger on a server', () => {
  it.each([
    ['a password that is wrong', (url: URL) => Object.assign(url, { password: 'wrong' })],
    ['a database that is not there', (url: URL) => Object.assign(url, { pathname: '/nowhere' })],
    ['a setting with a wrong value', withSetting('work_mem=much')],
    ['a role that is not there', withSetting('role=nobody')],
    ['an unknown setting', withSetting('memory=1')],
    ['a setting of the whole server', withSetting('port=1')],
    ['a setting that comes too late in a transaction', withSetting('transaction_isolation=serializable')],
  ])('is a mistake in the configuration with %s, and the password is not shown', async (_, change) => {
    const url = change(new URL(await newLedger('postgresql')));
    const said = await openingOf(url.href);
    expect(said).toEqual([expect.stringMatching(/^postgresql:\/\/127\.0\.0\.1:\d+\/\w+: /)]);
    expect(JSON.stringify(said)).not.toContain(url.password);
  });

  it('is not confused with tables of another program in another schema', async () => {
    const url = await createDatabase();
    await run(url, [
      'CREATE SCHEMA other',
      'CREATE TABLE other.kysely_migration (name varchar(255) PRIMARY KEY, timestamp varchar(255))',
      "INSERT INTO other.kysely_migration VALUES ('2020-users', '2020')",
      'CREATE TABLE other.kysely_migration_lock (id varchar(255) PRIMARY KEY, is_locked integer)',
    ]);
    expect(await openingOf(url)).toEqual([expect.stringContaining('holds no ledger')]);
    expect(await upgrade(url)).toEqual(MIGRATIONS);
    expect(await upgrade(url)).toEqual([]);
    expect(await openingOf(url)).toBe('open');
    // And a second ledger, in a schema that the URL names.
    await run(url, ['CREATE SCHEMA books']);
    const second = `${url}?options=-c%20search_path%3Dbooks`;
    expect(await openingOf(second)).toEqual([expect.stringContaining('holds no ledger')]);
    expect(await upgrade(second)).toEqual(MIGRATIONS);
    expect(await openingOf(second)).toBe('open');
  });

  it('names the privilege that a role lacks', async () => {
    const url = await newLedger('postgresql');
    const role = `role_${crypto.randomUUID().replaceAll('-', '')}`;
    const its = new URL(url);
    its.username = role;
    its.password = 'secret';
    await run(url, [
      `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`,
      'REVOKE USAGE ON SCHEMA public FROM PUBLIC',
      `GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO ${role}`,
    ]);
    const place = placeOf(url);
    expect(await openingOf(its.href)).toEqual([`${place}: the role "${role}" lacks USAGE of schema public`]);
    await run(url, [`GRANT USAGE ON SCHEMA public TO ${role}`]);
    expect(await openingOf(its.href)).toBe('open');
    await run(url, [`REVOKE UPDATE ON accounts, leases FROM ${role}`]);
    const lacks = `${place}: the role "${role}" lacks UPDATE on leases, UPDATE on accounts`;
    expect(await openingOf(its.href)).toEqual([lacks]);
    await run(url, [`REVOKE ALL ON ALL TABLES IN SCHEMA public FROM ${role}`]);
    expect(await openingOf(its.href)).toEqual([
      expect.stringMatching(/lacks SELECT on ledger, .*SELECT on kysely_migration$/),
    ]);
    await run(url, [`REVOKE ALL ON SCHEMA public FROM ${role}`, `DROP ROLE ${role}`]);
  });

  it('uses TLS if the server has it, unless TLS is required', async () => {
    const url = await newLedger('postgresql');
    for (const mode of ['disable', 'allow', 'prefer']) {
      expect(await openingOf(`${url}?sslmode=${mode}`)).toBe('open');
    }
    const chain = chainOf(`${url}?sslmode=require`);
    await chain.open();
    await expect(chain.read(async (ledger) => ledger.now())).rejects.toThrow('does not support SSL');
  });

  it('opens when the server is down, and refuses every lease', async () => {
    const port = await unusedPort();
    const logger = recordingLogger();
    const chain = chainOf(`postgresql://user:s3cret@127.0.0.1:${port}/ledger`, logger);
    await chain.open();
    expect(logger.lines).toEqual([
      expect.objectContaining({
        level: 'error',
        message: 'the ledger cannot be reached: leases are refused until it can',
      }),
    ]);
    expect(JSON.stringify(logger.lines)).not.toContain('s3cret');
    const ended = chain.end(
      { context: { user_id: 'alice', project_id: 'climate' }, lease: { name: 'a' } },
      {},
    );
    await expect(ended).rejects.toMatchObject({ name: 'LedgerUnavailableError' });
  });

  it('survives the loss of a connection, in a query and between two queries', async () => {
    const url = await newLedger('postgresql');
    const { ledger } = opened(url);
    const { queries } = ledger.database;
    const query = queries.selectFrom('projects').selectAll().compile();
    const slow = sql`SELECT pg_sleep(60)`.compile(queries);
    const settled = Promise.allSettled([ledger.database.read(() => rows(slow), NO_WAIT)]);
    await run(url, [], async (client) => {
      while ((await client.query(THROW_OUT)).rowCount === 0) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    });
    expect(await settled).toEqual([
      { status: 'rejected', reason: expect.objectContaining({ name: 'LedgerUnavailableError' }) },
    ]);
    const snapshot = ledger.database.snapshot(async (seen) => {
      await run(url, [THROW_OUT]);
      for await (const _ of seen.stream(query)) {
        // There is none.
      }
    }, NO_WAIT);
    await expect(snapshot).rejects.toMatchObject({ name: 'LedgerUnavailableError' });
    expect(await ledger.database.read(() => rows(query), NO_WAIT)).toEqual([]);
  });
});

/** Whoever asks something just then. */
const THROW_OUT = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE application_name = 'blazar-enforcement' AND datname = current_database() AND state <> 'idle'`;

const TABLES = [
  'budget_requests',
  'calendar_links',
  'replicas',
  'login_counts',
  'sessions',
  'decision_filters',
  'folds',
  'folded_balances',
  'decisions',
  'outbox',
  'follower',
  'ledger',
  'budget_changes',
  'budgets',
  'entries',
  'accounts',
  'leases',
  'projects',
];

function placeOf(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return protocol === 'sqlite:' ? pathname : `postgresql://${host}${pathname}`;
}

function optionsOf(connection: string) {
  return { connection, commit: 'check', timeout: 5, pool_size: 2 } as const;
}

const CLOCK = { now: () => new Date('2026-11-21T09:00:30Z') };

function opened(url: string) {
  const result = openLedger(optionsOf(url), { clock: CLOCK, observer: undefined });
  onTestFinished(() => result.ledger.close());
  return result;
}

function chainOf(url: string, logger = recordingLogger()): ChainLedger {
  const chain = new ChainLedger(optionsOf(url), { logger, clock: CLOCK, observer: undefined });
  onTestFinished(() => chain.close());
  return chain;
}

/** What is wrong with it. */
async function openingOf(url: string): Promise<'open' | string[]> {
  try {
    await chainOf(url).open();
    return 'open';
  } catch (thrown) {
    if (thrown instanceof ConfigurationError) {
      expect(thrown.problems).toEqual([
        expect.objectContaining({ severity: 'error', section: 'ledger', option: 'connection' }),
      ]);
      return thrown.problems.map(({ message }) => message);
    }
    throw thrown;
  }
}

/** Statements of somebody else, one after the other on one connection. */
async function run(
  url: string,
  statements: readonly string[],
  meanwhile?: (client: pg.Client) => Promise<void>,
): Promise<void> {
  const connection = connectionOf(url);
  if (connection.dialect === 'sqlite') {
    const client = openSqlite(connection.file);
    client.exec('PRAGMA foreign_keys = OFF');
    client.exec(statements.join(';'));
    client.close();
    return;
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) {
      await client.query(statement);
    }
    await meanwhile?.(client);
  } finally {
    await client.end();
  }
}
