import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { CompiledQuery } from 'kysely';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Wait, waitFor } from '../../../src/base/deadline.ts';
import { CommitGroups } from '../../../src/ledger/storage/commit-group.ts';
import {
  CommitInDoubtError,
  type Memory,
  rows,
  Undone,
  type Work,
} from '../../../src/ledger/storage/database.ts';
import type { GroupBounds } from '../../../src/ledger/storage/group-parts.ts';
import { SqliteDatabase } from '../../../src/ledger/storage/sqlite.ts';
import { openSqlite, SqliteError, type SqliteStatement } from '../../../src/ledger/storage/sqlite-driver.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { NO_WAIT } from '../../support/ledgers.ts';

const PATIENT = { timeout: 120_000, interval: 10 };
/** Parts of a group may take as long as a busy machine needs. */
const UNHURRIED: GroupBounds = { members: 64, milliseconds: 60_000, characters: 1024 * 1024 };

/** Knows nothing: parts have savepoints from their first write on, and ask the database for all the same. */
const knowsNothing = (): Memory => ({
  gather: () => [],
  recall: () => undefined,
  note() {},
  forget() {},
});

function placed(memory: (() => Memory) | undefined, bounds = UNHURRIED) {
  const file = join(temporaryFolder(), 'group.db');
  const beside = openSqlite(file);
  beside.exec('PRAGMA journal_mode = WAL');
  // A commit verifies deferred keys: a missing parent makes it fail, whatever was done before.
  beside.exec(`CREATE TABLE parts (name TEXT PRIMARY KEY, seen INTEGER,
    parent TEXT REFERENCES parts (name) DEFERRABLE INITIALLY DEFERRED)`);
  const database = new SqliteDatabase(file, 'full', bounds);
  database.memory = memory;
  onTestFinished(async () => {
    await database.close();
    beside.close();
  });
  const names = () =>
    beside
      .prepare('SELECT name FROM parts ORDER BY seen')
      .all([])
      .map((row) => (row as { name: string }).name);
  return { file, beside, database, names };
}

const raw = (sql: string, ...parameters: unknown[]) => rows(CompiledQuery.raw(sql, parameters));

const write = (name: string, seen: bigint, parent: string | null = null) =>
  raw('INSERT INTO parts (name, seen, parent) VALUES (?, ?, ?)', name, seen, parent);

/** Writes a name, with the number of names before it. */
function* part(name: string, parent: string | null = null): Work<bigint> {
  const [row] = (yield* raw('SELECT count(*) AS seen FROM parts')) as [{ seen: bigint }];
  yield* write(name, row.seen, parent);
  return row.seen;
}

function joinAll(database: SqliteDatabase, works: readonly (() => Work<unknown>)[], wait: Wait = NO_WAIT) {
  return Promise.all(
    works.map((work) => database.transact(work, wait).catch((thrown: Error) => `failed: ${thrown.message}`)),
  );
}

/** How many transactions the write-ahead log holds: the last frame of each tells the size of the file. Source: SQLite docs, "WAL". */
function commitsIn(file: string): number {
  const log = readFileSync(`${file}-wal`);
  const pageSize = log.readUInt32BE(8);
  let commits = 0;
  for (let frame = 32; frame < log.length; frame += 24 + pageSize) {
    const isOfThisLog = log.readUInt32BE(frame + 8) === log.readUInt32BE(16);
    commits += isOfThisLog && log.readUInt32BE(frame + 4) > 0 ? 1 : 0;
  }
  return commits;
}

/** Another process has the file at each commit, as long as `isLocked`. */
function lockedCommits(): { isLocked: boolean; commits: number } {
  const locked = { isLocked: true, commits: 0 };
  const any = openSqlite(':memory:');
  const statements: SqliteStatement = Object.getPrototypeOf(any.prepare('SELECT 1'));
  any.close();
  const { run } = statements;
  vi.spyOn(statements, 'run').mockImplementation(function (this: SqliteStatement, parameters) {
    if (this.source === 'COMMIT' && locked.isLocked) {
      locked.commits += 1;
      throw new SqliteError('database is locked', 'SQLITE_BUSY');
    }
    return run.call(this, parameters);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  return locked;
}

/** SQLite unlinks its temporary files at once; their names begin with etilqs. Empty where there is no /proc. */
function openFiles(): string[] {
  const folder = '/proc/self/fd';
  return !existsSync(folder)
    ? []
    : readdirSync(folder).flatMap((name) => {
        try {
          return [readlinkSync(join(folder, name))];
        } catch {
          return [];
        }
      });
}

/** Writes a name, and does more. */
const afterB = (more: () => Work<unknown>) =>
  function* (): Work<unknown> {
    yield* part('b');
    return yield* more();
  };
const NOT_UNIQUE = 'failed: UNIQUE constraint failed: parts.name';

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `part ${index}`);

describe.each([
  ['each asking for itself', undefined],
  ['with a memory', knowsNothing],
])('transactions that wait at the same time, %s', (_how, memory) => {
  const place = (bounds?: GroupBounds) => placed(memory, bounds);

  it('are committed once, in the order of arrival, and each sees those before it', async () => {
    const { file, database, names } = place();
    const before = commitsIn(file);
    expect(
      await joinAll(
        database,
        numbered(64).map((name) => () => part(name)),
      ),
    ).toEqual(numbered(64).map((_, index) => BigInt(index)));
    expect(names()).toEqual(numbered(64));
    expect(commitsIn(file) - before).toBe(1);
  });

  it('are answered when others can read what they have written, and no earlier', async () => {
    const { database, names } = place();
    const seen = await Promise.all(
      numbered(5).map((name) => database.transact(() => part(name), NO_WAIT).then(names)),
    );
    expect(seen).toEqual(numbered(5).map(() => numbered(5)));
  });

  it.each<[string, () => Work<unknown>, unknown]>([
    [
      'refuses',
      function* () {
        yield* part('b');
        return new Undone('refused');
      },
      'refused',
    ],
    [
      'throws',
      function* () {
        yield* part('b');
        throw new TypeError('broken');
      },
      'failed: broken',
    ],
    ['breaks a rule of a table', afterB(() => part('a')), NOT_UNIQUE],
    ['breaks a rule of a table without asking', afterB(() => write('a', 9n)), NOT_UNIQUE],
    ['breaks a rule of a table with all that it does', () => write('a', 9n), NOT_UNIQUE],
    ['writes a number that does not fit', () => write('b', 2n ** 64n), expect.stringContaining('failed: ')],
    [
      'asks for a table that is missing',
      afterB(() => raw('SELECT 1 FROM missing')),
      'failed: no such table: missing',
    ],
    [
      'has a number that does not fit',
      afterB(() => raw('SELECT ?', 2n ** 64n)),
      expect.stringContaining('failed: '),
    ],
  ])('lose only what the part has done that %s', async (_, broken, answer) => {
    const { file, database, names } = place();
    const before = commitsIn(file);
    const works = [() => part('a'), broken, () => part('c')];
    expect(await joinAll(database, works)).toEqual([0n, answer, 1n]);
    expect(names()).toEqual(['a', 'c']);
    expect(commitsIn(file) - before).toBe(1);
    // Alone it is the same.
    expect(await joinAll(database, [broken])).toEqual([answer]);
    expect(names()).toEqual(['a', 'c']);
    expect(commitsIn(file) - before).toBe(1);
  });

  it('all fail when the commit does, the refused ones too, and nothing is recorded', async () => {
    const { database, names } = place();
    const refused = function* () {
      yield* part('r');
      return new Undone('refused by what is not recorded');
    };
    const works = [() => part('a'), () => part('b', 'nobody'), refused, () => part('c')];
    const failed = 'failed: FOREIGN KEY constraint failed';
    expect(await joinAll(database, works)).toEqual([failed, failed, failed, failed]);
    expect(names()).toEqual([]);
    expect(await joinAll(database, [() => part('a')])).toEqual([0n]);
    expect(names()).toEqual(['a']);
  });

  it('all fail that ran in a transaction which has no room; those behind get one of their own', async () => {
    const { database, names } = place();
    const greedy = function* () {
      yield* raw('PRAGMA max_page_count = 1');
      yield* raw('INSERT INTO parts (name) VALUES (hex(zeroblob(100000)))');
    };
    const frugal = function* () {
      yield* raw('PRAGMA max_page_count = 1000000');
      return yield* part('c');
    };
    const answers = await joinAll(database, [() => part('a'), greedy, frugal, () => part('d')]);
    const failed = expect.stringContaining('full');
    expect(answers).toEqual([failed, failed, 0n, 1n]);
    expect(names()).toEqual(['c', 'd']);
  });

  it('all fail when there is no room for what one of them writes, and the next are served', async () => {
    const { database, names } = place();
    const limited = (pages: number) => () => raw(`PRAGMA max_page_count = ${pages}`);
    await joinAll(database, [limited(1)]);
    const long = 'long'.padEnd(100_000, '_');
    const failed = expect.stringContaining('full');
    expect(await joinAll(database, [() => part('a'), () => write(long, 1n)])).toEqual([failed, failed]);
    await joinAll(database, [limited(1_000_000)]);
    expect(await joinAll(database, [() => part('b'), () => part('c')])).toEqual([0n, 1n]);
    expect(names()).toEqual(['b', 'c']);
  });

  it('are recorded or refused, as each of them can wait for a file that another process has locked', async () => {
    const { beside, database, names } = place();
    beside.exec('BEGIN IMMEDIATE');
    const withLockTimeouts = new AbortController();
    const gone = joinAll(database, [() => part('gone')], waitFor(withLockTimeouts.signal));
    const patient = joinAll(database, [() => part('a'), () => part('b')]);
    withLockTimeouts.abort(new Error('nobody waits'));
    expect(await gone).toEqual(['failed: nobody waits']);
    const late = joinAll(database, [() => part('late')], waitFor(AbortSignal.abort(new Error('too late'))));
    expect(await late).toEqual(['failed: too late']);
    // Reads do not wait.
    expect(await database.read(() => raw('SELECT name FROM parts'), NO_WAIT)).toEqual([]);
    beside.exec('ROLLBACK');
    expect(await patient).toEqual([0n, 1n]);
    expect(names()).toEqual(['a', 'b']);
  });

  it('fail with their own reason when nobody can wait any longer, and the next one is served', async () => {
    const { beside, database, names } = place();
    beside.exec('BEGIN IMMEDIATE');
    const reasons = ['first', 'second'];
    const waits = reasons.map(() => new AbortController());
    const answers = Promise.all(
      waits.flatMap(({ signal }, index) => joinAll(database, [() => part(`gone ${index}`)], waitFor(signal))),
    );
    await new Promise((resolve) => setImmediate(resolve));
    for (const [index, wait] of waits.entries()) {
      wait.abort(new Error(reasons[index]));
    }
    expect(await answers).toEqual([['failed: first'], ['failed: second']]);
    beside.exec('ROLLBACK');
    expect(await joinAll(database, [() => part('a')])).toEqual([0n]);
    expect(names()).toEqual(['a']);
  });

  it('do not fail with those who left before them, however soon they come', async () => {
    const { database, names } = place();
    const over: Wait = {
      signal: undefined,
      throwIfOver() {
        throw new Error('too late');
      },
    };
    const followed = (turns: number) =>
      database
        .transact(() => part('late'), over)
        .catch(async () => {
          for (let turn = 0; turn < turns; turn += 1) {
            await undefined;
          }
          return database.transact(() => part(`after ${turns}`), NO_WAIT);
        });
    for (let turns = 0; turns < 6; turns += 1) {
      await followed(turns);
    }
    expect(names()).toHaveLength(6);
  });

  it('are left by whoever cannot wait until a commit that found the file locked can be tried again', async () => {
    const { database, names } = place();
    const lockedAt = lockedCommits();
    const over: Wait = {
      signal: undefined,
      throwIfOver() {
        if (lockedAt.commits > 0) {
          throw new Error('too late');
        }
      },
    };
    const hasty = joinAll(database, [() => part('gone')], over);
    const patient = joinAll(database, [() => part('a')]);
    expect(await hasty).toEqual(['failed: too late']);
    lockedAt.isLocked = false;
    expect(await patient).toEqual([0n]);
    expect(names()).toEqual(['a']);
  });

  it('lose the part whose wait ends while it runs, and no other', async () => {
    const { database, names } = place();
    const over = new AbortController();
    const slow = function* () {
      yield* part('slow');
      over.abort(new Error('too slow'));
      return 'slow';
    };
    const [first, late, last] = await Promise.all([
      joinAll(database, [() => part('a')]),
      joinAll(database, [slow], waitFor(over.signal)),
      joinAll(database, [() => part('b')]),
    ]);
    expect([first, late, last]).toEqual([[0n], ['failed: too slow'], [1n]]);
    expect(names()).toEqual(['a', 'b']);
  });

  it.each<[string, Partial<GroupBounds>, number]>([
    ['members', { members: 4 }, 3],
    ['characters', { characters: 3 * 'part 0'.length }, 4],
    ['milliseconds', { milliseconds: 0 }, 10],
  ])('are no more than the bounds allow: %s', async (_, bounds, commits) => {
    const { file, database, names } = place({ ...UNHURRIED, ...bounds });
    const before = commitsIn(file);
    await joinAll(
      database,
      numbered(10).map((name) => () => part(name)),
    );
    expect(names()).toEqual(numbered(10));
    expect(commitsIn(file) - before).toBe(commits);
  });

  it('write nothing to other files, however much a part may have to take back', async () => {
    const { database, names } = place();
    const longer = function* () {
      yield* raw("UPDATE parts SET name = name || '.'");
      return openFiles().filter((file) => file.includes('etilqs'));
    };
    const long = (name: string) => part(name.padEnd(4000, '_'));
    await joinAll(
      database,
      numbered(64).map((name) => () => long(name)),
    );
    expect(await joinAll(database, [longer, () => part('a')])).toEqual([[], 64n]);
    expect(names().filter((name) => String(name).endsWith('.'))).toHaveLength(64);
  });

  it('let others have their turn between two groups', async () => {
    const { database } = place({ ...UNHURRIED, members: 1 });
    let committed = 0;
    const all = Promise.all(
      numbered(20).map((name) => database.transact(() => part(name), NO_WAIT).then(() => committed++)),
    );
    const seen = new Set<number>();
    await vi.waitFor(
      async () => {
        await new Promise((resolve) => setImmediate(resolve));
        seen.add(committed);
        expect(committed).toBe(20);
      },
      { ...PATIENT, interval: 0 },
    );
    await all;
    expect(seen.size).toBeGreaterThan(1);
  });
});

it('tells each caller what may be recorded for it when the commit is in doubt', async () => {
  const groups = new CommitGroups({
    async commit(work) {
      const all = work();
      for (let step = all.next([]); !step.done; step = all.next([])) {}
      throw new CommitInDoubtError('no answer', undefined, { cause: new Error('gone') });
    },
    ownError: (error) => ({ error }),
  });
  const granted = groups.join(function* () {
    yield* raw('SELECT 1');
    return 'granted';
  }, NO_WAIT);
  const refused = groups.join(function* () {
    yield* raw('SELECT 1');
    return new Undone('refused');
  }, NO_WAIT);
  await expect(refused).rejects.toMatchObject({ name: 'LedgerUnavailableError', message: 'no answer' });
  await expect(granted).rejects.toSatisfy(
    (thrown) => thrown instanceof CommitInDoubtError && thrown.result === 'granted',
  );
});

it('lets each caller go at the end of its wait while the database is not there at all', async () => {
  const groups = new CommitGroups({
    commit: (_, { signal }) =>
      new Promise((__, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
    ownError: (error) => ({ error }),
  });
  const waits = [new AbortController(), new AbortController()];
  const join = ({ signal }: AbortController) =>
    groups.join(() => part('a'), waitFor(signal)).catch((thrown: Error) => thrown.message);
  const [first, second] = waits.map(join);
  await new Promise((resolve) => setImmediate(resolve));
  const third = new AbortController();
  const later = join(third);
  waits[0]?.abort(new Error('first'));
  expect(await first).toBe('first');
  third.abort(new Error('third'));
  expect(await later).toBe('third');
  waits[1]?.abort(new Error('second'));
  expect(await second).toBe('second');
});
