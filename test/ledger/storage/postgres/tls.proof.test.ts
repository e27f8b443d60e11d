/** TLS to a real PostgreSQL with `verify-full`: only a server of the right authority and name is talked to, and never without TLS. */
import { chmodSync, chownSync, copyFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { ChainLedger } from '../../../../src/ledger/service.ts';
import { upgraded } from '../../../support/ledgers.ts';
import { listen } from '../../../support/listening.ts';
import { recordingLogger } from '../../../support/logger.ts';
import { type Postgres, startPostgres } from '../../../support/postgres.ts';
import { runSql } from '../../../support/postgres-activity.ts';
import { tlsFixture } from '../../../support/tls.ts';

let postgres: Postgres;
let plain: string;
beforeAll(async () => {
  postgres = await startPostgres();
  plain = await upgraded(await postgres.createDatabase());
});
afterAll(() => postgres.remove());

/** Makes it show the certificate of that name from now on; `undefined` = it has no TLS. */
async function show(certificate: string | undefined): Promise<void> {
  if (certificate !== undefined) {
    const [row] = await runSql(plain, 'SHOW data_directory');
    const { data_directory: folder } = row as { data_directory: string };
    const { uid, gid } = statSync(folder);
    for (const name of ['pem', 'key']) {
      const file = join(folder, `server.${name}`);
      copyFileSync(tlsFixture(`${certificate}.${name}`), file);
      chownSync(file, uid, gid);
      chmodSync(file, 0o600);
    }
    await runSql(plain, "ALTER SYSTEM SET ssl_cert_file = 'server.pem'");
  }
  await runSql(plain, `ALTER SYSTEM SET ssl = ${certificate === undefined ? 'off' : 'on'}`);
  // A connection has what its server had read when it was made.
  const loaded = () => runSql(plain, 'SELECT pg_conf_load_time()::text');
  const before = await loaded();
  await runSql(plain, 'SELECT pg_reload_conf()');
  await expect.poll(loaded).not.toEqual(before);
}

/** `open`, or why it cannot be reached: the service starts, and refuses every lease. */
async function openingAt(host: string, authority: string, port?: number): Promise<string> {
  const url = new URL(plain);
  url.hostname = host;
  url.port = String(port ?? url.port);
  url.searchParams.set('sslmode', 'verify-full');
  url.searchParams.set('sslrootcert', tlsFixture(authority));
  const logger = recordingLogger();
  const chain = new ChainLedger(
    { connection: url.href, commit: 'check', timeout: 5, pool_size: 2 },
    { logger, clock: { now: () => new Date() }, observer: undefined },
  );
  onTestFinished(() => chain.close());
  await chain.open();
  try {
    await chain.read(async (ledger) => ledger.now());
    return 'open';
  } catch (thrown) {
    expect(logger.lines).toMatchObject([
      { level: 'error', message: 'the ledger cannot be reached: leases are refused until it can' },
    ]);
    return String(thrown);
  }
}

it('with the right authority: is open, at each of its names', async () => {
  await show('server');
  expect(await openingAt('localhost', 'ca.pem')).toBe('open');
  expect(await openingAt('127.0.0.1', 'ca.pem')).toBe('open');
});

it('with the wrong authority: is not used', async () => {
  await show('server');
  expect(await openingAt('localhost', 'second-ca.pem')).toMatch(/unable to verify the first certificate/);
});

it('with the certificate of another host: is not used', async () => {
  await show('other');
  expect(await openingAt('localhost', 'ca.pem')).toMatch(
    /Hostname\/IP does not match certificate's altnames: Host: localhost/,
  );
});

it('with a certificate that has expired: is not used', async () => {
  await show('expired');
  expect(await openingAt('localhost', 'expired.pem')).toMatch(/certificate has expired/);
});

it('without TLS: is not used', async () => {
  await show(undefined);
  expect(await openingAt('localhost', 'ca.pem')).toMatch(/The server does not support SSL connections/);
});

it('with another protocol: is not used, and no connection to it stays open', async () => {
  const closed: Promise<unknown>[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    closed.push(new Promise((resolve) => socket.on('error', () => {}).once('close', resolve)));
    // It is never ended. What is written shows the socket that the other side has closed.
    const writing = setInterval(() => socket.write('+OK ready\r\n'), 20);
    socket.once('close', () => clearInterval(writing));
  });
  const { port } = await listen(server, 0);
  expect(await openingAt('localhost', 'ca.pem', port)).toMatch(/error establishing an SSL connection/);
  expect(closed.length).toBeGreaterThan(0);
  await Promise.all(closed);
});
