/** Reads of everything in PostgreSQL, which may take longer than the timeout as long as the server lives. */
import { CompiledQuery } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { LedgerUnavailableError } from '../../../../src/base/errors.ts';
import { PostgresDatabase } from '../../../../src/ledger/storage/postgres/postgres.ts';
import { NO_WAIT } from '../../../support/ledgers.ts';
import { backends, runSql } from '../../../support/postgres-activity.ts';
import { startProxy } from '../../../support/postgres-proxy.ts';
import { startTcpService } from '../../../support/services.ts';
import { createDatabase } from '../../../support/shared-postgres.ts';

/** In seconds: a busy machine opens a connection in it. */
const TIMEOUT = 3;
/** Ends while the server is being asked for the first time whether it lives. */
const SECONDS = 1.5 * TIMEOUT;

/** A pool of one connection, which the read takes. */
function openDatabase(connection: string): PostgresDatabase {
  const database = new PostgresDatabase(connection, { poolSize: 1, timeout: TIMEOUT });
  onTestFinished(() => database.close());
  return database;
}

/** Takes at least so many seconds. */
function read(database: PostgresDatabase, seconds: number): Promise<string[]> {
  const query = CompiledQuery.raw(`SELECT 'the row' AS row FROM pg_sleep(${seconds})`);
  return database.snapshot(async (snapshot) => {
    const rows: string[] = [];
    for await (const { row } of snapshot.stream(query as CompiledQuery<{ row: string }>)) {
      rows.push(row);
    }
    return rows;
  }, NO_WAIT);
}

it('ends when the server stops answering, and leaves no connection', async () => {
  const connection = await createDatabase();
  const proxy = await startProxy(connection);
  const database = openDatabase(proxy.connection);
  expect(await read(database, 0)).toEqual(['the row']);
  proxy.cutAt('FETCH');
  await expect(read(database, 0)).rejects.toThrow(LedgerUnavailableError);
  proxy.mend();
  expect(await read(database, 0)).toEqual(['the row']);
  await expect.poll(() => backends(connection)).toHaveLength(1);
});

it('goes on while the server answers', async () => {
  const connection = await createDatabase();
  expect(await read(openDatabase(connection), 2.25 * TIMEOUT)).toEqual(['the row']);
  await expect.poll(() => backends(connection)).toHaveLength(1);
});

it('goes on while the server has no other connection to give', async () => {
  const connection = new URL(await createDatabase());
  const role = `limited_${crypto.randomUUID().replaceAll('-', '')}`;
  await runSql(connection.href, `CREATE ROLE ${role} LOGIN PASSWORD 'limited' CONNECTION LIMIT 1`);
  connection.username = role;
  connection.password = 'limited';
  expect(await read(openDatabase(connection.href), SECONDS)).toEqual(['the row']);
});

it('ends with its last row, although the server is being asked whether it lives', async () => {
  // The question would not end by itself.
  const proxy = await startProxy(`${await createDatabase()}?connect_timeout=3600`);
  const database = openDatabase(proxy.connection);
  expect(await read(database, 0)).toEqual(['the row']);
  const silent = await startTcpService((socket) => socket.resume());
  proxy.moveTo(silent.port);
  expect(await read(database, SECONDS)).toEqual(['the row']);
  expect(silent.sockets).toHaveLength(1);
  await expect.poll(() => silent.sockets[0]?.destroyed).toBe(true);
});
