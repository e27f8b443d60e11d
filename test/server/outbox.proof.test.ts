/** The service with durable delivery: reloads, metrics, and what it keeps to itself. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { outboxCommand } from '../../src/cli/outbox.ts';
import { openSqlite } from '../../src/ledger/storage/sqlite-driver.ts';
import { runInProcess } from '../support/command-in-process.ts';
import { breakLedger, newLedger } from '../support/ledgers.ts';
import { type PolicyServer, policyServer } from '../support/policy-server.ts';
import { capturedText } from '../support/requests.ts';
import { runServiceOnFile } from '../support/running-service.ts';
import { readSamples } from '../support/samples.ts';

const END = capturedText('on-end-active.json');
const TOKEN = 'the-token-of-the-service';
const BEARER = 'the-bearer-of-the-service';

async function serving(first: PolicyServer, { token = TOKEN, bearer = BEARER } = {}) {
  const connection = await newLedger();
  const text = (url: string, token: string, bearer: string) => `[enforcement]
enabled_filters = ExternalServiceFilter
external_service_on_end_endpoint = ${url}/on-end?secret=in-the-query
external_service_token = ${token}
external_service_bearer_token = ${bearer}
external_service_delivery = durable
external_service_breaker_failures = 0
[service]
port = 0
[ledger]
connection = ${connection}
`;
  const { conf, change, ...running } = await runServiceOnFile(text(first.url, token, bearer));
  const outbox = (...args: string[]) => runInProcess(outboxCommand(), [...args, '--config-file', conf]);
  const listed = async () => JSON.parse((await outbox('list', '--format', 'json')).stdout);
  const reloadWith = (...now: Parameters<typeof text>) => change(text(...now));
  return { ...running, connection, outbox, listed, reloadWith };
}

const outboxSamples = async (url: string) =>
  Object.fromEntries(Object.entries(await readSamples(url)).filter(([name]) => name.startsWith('outbox_')));

describe('a reload', () => {
  it('delivers what waits to the new address, with the new credentials', async () => {
    const before = await policyServer({ status: 500 });
    const after = await policyServer({ status: 204 });
    const { post, reloadWith } = await serving(before);
    expect(await post('/on-end', END)).toMatchObject({ status: 204 });
    await expect.poll(() => before.requests).toHaveLength(1);
    expect(await reloadWith(after.url, 'another-token', 'another-bearer')).toBe(true);
    await expect.poll(() => after.requests).toHaveLength(1);
    const [sent] = before.requests;
    const [delivered] = after.requests;
    expect(delivered?.body).toBe(sent?.body);
    expect(delivered?.headers).toMatchObject({
      'x-auth-token': 'another-token',
      authorization: 'Bearer another-bearer',
      'idempotency-key': sent?.headers['idempotency-key'],
    });
    // An attempt under the earlier configuration may have begun before.
    const heard = before.requests.length;
    expect(await post('/on-end', END)).toMatchObject({ status: 204 });
    await expect.poll(() => after.requests).toHaveLength(2);
    expect(before.requests).toHaveLength(heard);
  });
});

describe('metrics', () => {
  it('say what waits, since when, and what was tried', async () => {
    const service = await policyServer({ status: 503, headers: { 'Retry-After': '3600' } });
    const { url, post, listed } = await serving(service);
    expect(await post('/on-end', END)).toMatchObject({ status: 204 });
    await expect.poll(() => service.requests).toHaveLength(1);
    await expect.poll(listed).toMatchObject([{ state: 'waiting', attempts: 1 }]);
    const samples = await outboxSamples(url);
    expect(samples).toMatchObject({
      outbox_waiting: 1,
      outbox_dead: 0,
      'outbox_attempts_total{outcome="delivered"}': 0,
      'outbox_attempts_total{outcome="failed"}': 1,
      'outbox_attempts_total{outcome="dead"}': 0,
    });
    expect(samples.outbox_oldest_seconds).toBeGreaterThan(0);
  });
});

describe('an outbox that cannot be written', () => {
  it('is in the log, and the end is sent directly', async () => {
    const service = await policyServer({ status: 204 });
    const { post, connection, logger } = await serving(service);
    breakLedger(connection, 'outbox');
    expect(await post('/on-end', END)).toMatchObject({ status: 204, text: '' });
    const failed = logger.lines.filter((line) => JSON.stringify(line).includes('no such table: outbox'));
    expect(JSON.stringify(failed)).toContain('ExternalServiceFilter');
    expect(service.requests).toHaveLength(1);
  });
});

describe('secrets', () => {
  it('are neither in the ledger, nor in what the commands print, nor in the log', async () => {
    const service = await policyServer((request, response) => {
      // A broken service echoes what it was sent.
      response.writeHead(500).end(JSON.stringify(request.headers));
    });
    const { post, connection, logger, outbox, listed } = await serving(service);
    expect(await post('/on-end', END)).toMatchObject({ status: 204 });
    await expect.poll(listed).toMatchObject([{ error: expect.stringContaining('500') }]);
    service.server.closeAllConnections();
    service.server.close();
    const file = connection.slice('sqlite://'.length);
    const database = openSqlite(file);
    const table = JSON.stringify(database.prepare('SELECT * FROM outbox').all([]));
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    database.close();
    const printed = [
      await outbox('list'),
      await outbox('show', '1'),
      await outbox('show', '1', '--format', 'json'),
    ];
    const everything = [
      table,
      readFileSync(file, 'latin1'),
      ...printed.map(({ stdout, stderr }) => stdout + stderr),
      JSON.stringify(logger.lines),
    ];
    expect(table).toContain('500');
    for (const text of everything) {
      expect(text).not.toContain(TOKEN);
      expect(text).not.toContain(BEARER);
      expect(text).not.toContain('in-the-query');
    }
  });
});
