/** Transactions of one project in PostgreSQL that wait at the same time: committed together, judged and answered each by itself. */
import { CompiledQuery } from 'kysely';
import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type Wait, waitFor } from '../../../../src/base/deadline.ts';
import { CommitInDoubtError, rows, Undone, type Work } from '../../../../src/ledger/storage/database.ts';
import { PostgresDatabase } from '../../../../src/ledger/storage/postgres/postgres.ts';
import { NO_WAIT } from '../../../support/ledgers.ts';
import { runSql } from '../../../support/postgres-activity.ts';
import { createDatabase } from '../../../support/shared-postgres.ts';

/** Parts of a group may take as long as a busy machine needs. */
const UNHURRIED = { members: 64, milliseconds: 60_000, characters: 1024 * 1024 };
const LARGEST = 2n ** 63n - 1n;

async function place(poolSize = 2) {
  const connection = await createDatabase();
  await runSql(
    connection,
    `CREATE TABLE turns (project text PRIMARY KEY, revision bigint NOT NULL);
     INSERT INTO turns VALUES ('hot', 0), ('other', 0);
     CREATE TABLE parts (name text PRIMARY KEY, seen bigint, number bigint)`,
  );
  const database = new PostgresDatabase(connection, { poolSize, timeout: 30 }, UNHURRIED);
  onTestFinished(() => database.close());
  const { queries } = database;
  /** Waits for its turn, as a lease does, and writes without waiting for the answer. */
  function* part(name: string, number = 0n, project = 'hot'): Work<bigint> {
    yield* raw('UPDATE turns SET revision = revision + 1 WHERE project = $1 RETURNING revision', project);
    const [row] = (yield* raw('SELECT count(*) AS seen, min(number) FROM parts')) as [{ seen: bigint }];
    const { seen } = row;
    yield queries
      .insertInto('parts' as never)
      .values({ name, seen, number } as never)
      .compile();
    return seen;
  }
  const refuses = function* (): Work<Undone<string>> {
    yield* part('refused');
    return new Undone('refused');
  };
  const join = (work: () => Work<unknown>, wait: Wait = NO_WAIT, project = 'hot') =>
    database.transact(work, wait, project).catch((thrown: Error) => `failed: ${thrown.message}`);
  const names = async () =>
    (await runSql(connection, 'SELECT name FROM parts ORDER BY seen')).map((row) => Object(row).name);
  return { connection, database, part, refuses, join, names };
}

const raw = (sql: string, ...parameters: unknown[]) => rows(CompiledQuery.raw(sql, parameters));
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `part ${index}`);

const ENDED = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid <> pg_backend_pid() AND datname = current_database()`;

/** How often this is sent from now on. */
function counting(statement: string): () => number {
  const query = vi.spyOn(pg.Client.prototype, 'query');
  onTestFinished(() => query.mockRestore());
  return () =>
    query.mock.calls.filter(([asked]) => Object(asked).text === statement || asked === statement).length;
}

it('commits those of one project together, in the order of arrival', async () => {
  const { database, part, join, names } = await place();
  // A new connection has a transaction of its own.
  await database.read(() => raw('SELECT 1'), NO_WAIT);
  const commits = counting('COMMIT');
  const answers = await Promise.all(numbered(30).map((name) => join(() => part(name))));
  expect(answers).toEqual(numbered(30).map((_, index) => BigInt(index)));
  expect(await names()).toEqual(numbered(30));
  expect(commits()).toBe(1);
});

it('takes back only the part that refuses, that breaks, or whose value cannot be stored', async () => {
  const { part, refuses, join, names } = await place();
  const breaks = function* () {
    yield* part('broken');
    throw new Error('broken');
  };
  const asksTooMuch = function* () {
    yield* part('asked');
    yield* raw('SELECT $1::bigint + 1', LARGEST);
  };
  const answers = await Promise.all(
    [
      () => part('a'),
      refuses,
      () => part('b'),
      breaks,
      () => part('too large', LARGEST + 1n),
      () => part('c'),
      asksTooMuch,
      () => part('a'),
      () => part('d'),
    ].map((work) => join(work)),
  );
  expect(answers).toEqual([
    0n,
    'refused',
    1n,
    'failed: broken',
    expect.stringContaining('out of range'),
    2n,
    expect.stringContaining('out of range'),
    expect.stringContaining('duplicate key'),
    3n,
  ]);
  expect(await names()).toEqual(['a', 'b', 'c', 'd']);
});

it.each([
  ['the server ends the connection', (connection: string) => runSql(connection, ENDED)],
  [
    'the connection breaks',
    async () => {
      const [client] = vi.mocked(pg.Client.prototype.query).mock.contexts.slice(-1);
      (client as pg.PoolClient).connection.stream.destroy();
    },
  ],
])('runs all again when %s before the commit', async (_, end) => {
  const { connection, part, join, names } = await place();
  const commits = counting('COMMIT');
  let isFirst = true;
  function* ends(): Work<bigint> {
    const seen = yield* part('b');
    if (isFirst) {
      isFirst = false;
      void end(connection);
      yield* raw('SELECT pg_sleep(60)');
    }
    return seen;
  }
  const answers = await Promise.all([() => part('a'), ends, () => part('c')].map((work) => join(work)));
  expect(answers).toEqual([0n, 1n, 2n]);
  expect(await names()).toEqual(['a', 'b', 'c']);
  expect(commits()).toBeGreaterThan(0);
});

it('tells each that is written that the commit is in doubt, and the refused that nothing is recorded', async () => {
  const { connection, database, part, refuses, names } = await place();
  await runSql(
    connection,
    `CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); RETURN NULL; END $$;
     CREATE CONSTRAINT TRIGGER dies AFTER INSERT ON parts DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW WHEN (NEW.name = 'fatal') EXECUTE FUNCTION die()`,
  );
  const works: (() => Work<unknown>)[] = [() => part('a'), refuses, () => part('fatal')];
  const answers = await Promise.allSettled(works.map((work) => database.transact(work, NO_WAIT, 'hot')));
  const reasons = answers.map((answer) => (answer.status === 'rejected' ? answer.reason : answer.value));
  expect(reasons).toMatchObject(works.map(() => ({ name: 'LedgerUnavailableError' })));
  const doubts = reasons.map((reason) => (reason instanceof CommitInDoubtError ? reason.result : undefined));
  expect(doubts).toEqual([0n, undefined, 1n]);
  expect(await names()).toEqual([]);
});

it('lets each go at the end of its wait, goes on for the others, and leaves other projects alone', async () => {
  const { connection, part, join, names } = await place(2);
  const holder = new pg.Client(connection);
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query(`BEGIN; UPDATE turns SET revision = 7 WHERE project = 'hot'`);
  const waits = numbered(3).map(() => new AbortController());
  const [first, second, third] = waits.map(({ signal }, index) =>
    join(() => part(`gone ${index}`), waitFor(signal)),
  );
  const patient = ['a', 'b', 'c'].map((name) => join(() => part(name)));
  const busy = () =>
    runSql(
      connection,
      `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
    );
  await expect.poll(busy).toHaveLength(1);
  // One waits for its row, however many there are.
  expect(
    await Promise.all(numbered(5).map((name) => join(() => part(name, 0n, 'other'), NO_WAIT, name))),
  ).toEqual(expect.arrayContaining([0n]));
  waits[1]?.abort(new Error('second'));
  expect(await second).toBe('failed: second');
  waits[0]?.abort(new Error('first'));
  expect(await first).toBe('failed: first');
  await expect.poll(busy).toHaveLength(1);
  waits[2]?.abort(new Error('third'));
  expect(await third).toBe('failed: third');
  await holder.query('ROLLBACK');
  expect(await Promise.all(patient)).toEqual([5n, 6n, 7n]);
  expect((await names()).slice(5)).toEqual(['a', 'b', 'c']);
});

it('runs again what has met connections that the server has closed because they were idle', async () => {
  const { connection, database, names, part, join } = await place(3);
  await runSql(
    connection,
    `ALTER DATABASE ${new URL(connection).pathname.slice(1)} SET idle_session_timeout = 300`,
  );
  const all = () =>
    Promise.all([
      join(() => part('of one'), NO_WAIT, 'hot'),
      join(() => part('of another', 0n, 'other'), NO_WAIT, 'other'),
      database.read(() => raw('SELECT 1 AS one'), NO_WAIT).then(([row]) => row),
    ]);
  await all();
  await runSql(connection, 'DELETE FROM parts');
  // Nothing is read from the connections meanwhile: what is sent next meets their end.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
  expect(await all()).toEqual([expect.any(BigInt), expect.any(BigInt), { one: 1 }]);
  expect(await names()).toHaveLength(2);
});

it('runs again what has met a statement from before an upgrade, and refuses nothing', async () => {
  const { connection, database, names, part } = await place(3);
  const { queries } = database;
  const { prepared } = await import('../../../../src/ledger/storage/prepared.ts');
  const all = prepared((of: { name: string }) =>
    queries
      .selectFrom('parts' as never)
      .selectAll()
      .where('name' as never, '!=', of.name as never),
  );
  function* writes(name: string): Work<number> {
    const seen = yield* rows(all({ name: 'nobody' }));
    yield* part(name);
    return seen.length;
  }
  const together = (...list: string[]) =>
    Promise.all(list.map((name) => database.transact(() => writes(name), NO_WAIT, name)));
  await together('a', 'b', 'c');
  await runSql(connection, 'ALTER TABLE parts ADD COLUMN added text');
  await together('d', 'e', 'f');
  await runSql(connection, 'ALTER TABLE parts ADD COLUMN again text');
  const read = () => database.read(() => rows(all({ name: 'nobody' })), NO_WAIT);
  expect((await Promise.all([read(), read(), read()])).map(({ length }) => length)).toEqual([6, 6, 6]);
  expect(await names()).toHaveLength(6);
});

it('tells one whose time is over during the commit that it is in doubt, and the others what they have come to', async () => {
  const { connection, database, part, refuses, names } = await place();
  await runSql(
    connection,
    `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
     CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON parts DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION wait()`,
  );
  const holder = new pg.Client(connection);
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query('SELECT pg_advisory_lock(1)');
  const withLockTimeouts = [new AbortController(), new AbortController()];
  const [written, undone] = [() => part('written'), refuses].map((work, index) =>
    database
      .transact<unknown>(work, waitFor(withLockTimeouts[index]?.signal), 'hot')
      .catch((thrown) => thrown),
  );
  const patient = ['a', 'b'].map((name) => database.transact(() => part(name), NO_WAIT, 'hot'));
  const commits = () =>
    runSql(
      connection,
      `SELECT 1 FROM pg_stat_activity
       WHERE query = 'COMMIT' AND wait_event = 'advisory' AND datname = current_database()`,
    );
  await expect.poll(commits).toHaveLength(1);
  for (const one of withLockTimeouts) {
    one.abort(new Error('it took too long'));
  }
  expect(await written).toBeInstanceOf(CommitInDoubtError);
  expect(await written).toMatchObject({ result: 0n });
  expect(await undone).toMatchObject({ message: 'it took too long' });
  expect(await undone).not.toBeInstanceOf(CommitInDoubtError);
  await holder.query('SELECT pg_advisory_unlock(1)');
  expect(await Promise.all(patient)).toEqual([1n, 2n]);
  expect(await names()).toEqual(['written', 'a', 'b']);
});
