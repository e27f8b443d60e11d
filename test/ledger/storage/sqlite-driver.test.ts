/** What the ledger relies on, of whichever SQLite this Node.js has. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openSqlite, type SqliteOptions } from '../../../src/ledger/storage/sqlite-driver.ts';
import { asUnavailable, isBusy, suspicionOf } from '../../../src/ledger/storage/sqlite-file.ts';
import { projectFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';

function opened(file = ':memory:', options: SqliteOptions = { bigints: true }) {
  const connection = openSqlite(file, options);
  onTestFinished(() => connection.close());
  return connection;
}

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (thrown) {
    return thrown;
  }
  return undefined;
}

it.each([
  ['the largest number of 64 bits', 2n ** 63n - 1n, 2n ** 63n - 1n],
  ['the smallest number of 64 bits', -(2n ** 63n), -(2n ** 63n)],
  ['a fraction', 0.1, 0.1],
  ['nothing', null, null],
  ['what is not defined', undefined, null],
  ['a text that is empty', '', ''],
  ['a text of many planes', 'ä😀\u0301\ufffe', 'ä😀\u0301\ufffe'],
])('gives back %s', (_what, value, expected) => {
  const statement = opened().prepare('SELECT ? AS value');
  expect(statement.reader).toBe(true);
  expect(statement.all([value])).toEqual([{ value: expected }]);
  expect([...statement.iterate([value])]).toEqual([{ value: expected }]);
});

it('gives back a text with NUL as it is, or refuses it', () => {
  const statement = opened().prepare('SELECT ? AS value');
  const thrown = thrownBy(() => expect(statement.all(['a\0b'])).toEqual([{ value: 'a\0b' }]));
  expect([undefined, 'LedgerContentError']).toContain((asUnavailable(thrown) as Error | undefined)?.name);
});

it.each([
  ['a number of more than 64 bits', 2n ** 63n],
  ['a text of more than a string holds', 'ä'.repeat(300_000_000)],
])('refuses %s, as content of the lease', (_what, value) => {
  const statement = opened().prepare('SELECT ? AS value');
  expect(asUnavailable(thrownBy(() => statement.all([value])))).toMatchObject({
    name: 'LedgerContentError',
    message: 'The bound string, buffer, or bigint is too big',
  });
});

it.each([
  ['SELECT nothing', /^SQLITE_ERROR/],
  ["INSERT INTO t VALUES (1, 'twice')", /^SQLITE_CONSTRAINT/],
  ["INSERT INTO t VALUES ('text', 'no number')", /^SQLITE_MISMATCH/],
])('names the code of what fails: %s', (sql, code) => {
  const connection = opened();
  connection.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO t VALUES (1, 'once')");
  expect(thrownBy(() => connection.exec(sql))).toMatchObject({ code: expect.stringMatching(code) });
  const run = () => {
    const statement = connection.prepare(sql);
    return statement.reader ? statement.all([]) : statement.run([]);
  };
  expect(thrownBy(run)).toMatchObject({ code: expect.stringMatching(code) });
});

it('says what is locked, read-only, damaged or not there, and nothing else', () => {
  const folder = temporaryFolder();
  const file = join(folder, 'a.db');
  const holder = opened(file);
  holder.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (x); BEGIN IMMEDIATE');
  const other = opened(file, { timeout: 0 });
  expect(isBusy(thrownBy(() => other.exec('BEGIN IMMEDIATE')))).toBe(true);
  // Its snapshot is older than what was committed since.
  other.exec('BEGIN; SELECT * FROM t');
  holder.exec('INSERT INTO t VALUES (1); COMMIT');
  expect(isBusy(thrownBy(() => other.exec('INSERT INTO t VALUES (2)')))).toBe(true);

  const suspicion = (thrown: unknown) => suspicionOf(asUnavailable(thrown));
  const reader = opened(file, { readonly: true });
  const readonly = thrownBy(() => reader.exec('INSERT INTO t VALUES (3)'));
  expect(suspicion(readonly)).toEqual({ isSuspect: true, mayBeDamaged: false });
  const nowhere = thrownBy(() => openSqlite(join(folder, 'b.db'), { readonly: true }));
  expect(suspicion(nowhere)).toEqual({ isSuspect: true, mayBeDamaged: false });
  const text = join(folder, 'text');
  writeFileSync(text, 'this is no database'.repeat(1000));
  const damaged = thrownBy(() => opened(text).exec('SELECT * FROM sqlite_master'));
  expect(suspicion(damaged)).toEqual({ isSuspect: true, mayBeDamaged: true });
  const short = join(folder, 'short.db');
  holder.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  copyFileSync(file, short);
  truncateSync(short, 4096);
  const cut = thrownBy(() => opened(short).exec('SELECT * FROM t'));
  expect(suspicion(cut)).toEqual({ isSuspect: true, mayBeDamaged: true });
});

it('knows whether a transaction is open, and may be closed twice', () => {
  const connection = opened();
  connection.exec('BEGIN');
  expect(connection.inTransaction).toBe(true);
  connection.close();
  expect(connection.inTransaction).toBe(false);
  expect(() => connection.close()).not.toThrow();
});

it('stops to read when its reader does', () => {
  const connection = opened();
  connection.exec('CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3)');
  for (const row of connection.prepare('SELECT x FROM t').iterate([])) {
    expect(row).toEqual({ x: 1n });
    break;
  }
  expect(() => connection.exec('DROP TABLE t')).not.toThrow();
});

/** What a process prints that opens a file with the compiled driver. */
function openedApart(folder: string, before: string) {
  const script = `${before}
    const { openSqlite } = await import(${JSON.stringify(projectFile('dist/src/ledger/storage/sqlite-driver.js'))});
    try {
      console.log(JSON.stringify(openSqlite(':memory:').prepare('SELECT 1 AS one').all([])));
    } catch (thrown) {
      console.log(thrown.message);
    }`;
  return spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: folder,
    encoding: 'utf8',
  });
}

it('warns of nothing', () => {
  expect(openedApart(temporaryFolder(), '')).toMatchObject({ stdout: '[{"one":1}]\n', stderr: '' });
});

it('says what to do where there is neither', () => {
  const folder = temporaryFolder();
  const without = `import Module from 'node:module';
    process.getBuiltinModule = () => undefined;
    const { _resolveFilename: resolve } = Module;
    Module._resolveFilename = (name, ...rest) => {
      if (name === 'better-sqlite3') throw new Error('Cannot find module better-sqlite3');
      return resolve(name, ...rest);
    };`;
  expect(openedApart(folder, without)).toMatchObject({
    stdout: `[ledger] connection: this Node.js (${process.version}) has no SQLite that a ledger can use, and the package better-sqlite3 cannot be loaded (Cannot find module better-sqlite3): use Node.js 24 or newer, or run npm install better-sqlite3, or use PostgreSQL\n`,
    stderr: '',
  });
});
