/** The policy service with `[notifications]`, and a receiver. */
import { existsSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { confFile } from '../../support/files.ts';
import { breakLedger, DIALECTS, mendLedger, newLedger, newLedgers } from '../../support/ledgers.ts';
import { policyServer } from '../../support/policy-server.ts';
import { capturedText } from '../../support/requests.ts';
import { runServiceOn } from '../../support/running-service.ts';
import { readSamples } from '../../support/samples.ts';
import { unusedPort } from '../../support/unused-port.ts';
import { eventIn } from './cloud-events.ts';
import { askForBudget, OPERATOR_TOKEN } from './facts.ts';

const newLedgerOn = newLedgers();
const TOO_LONG = capturedText('check-create-physical-host.json');
const CHECK = '/check-create';

const conf = (connection: string, notifications: string) => `[enforcement]
enabled_filters = MaxLeaseDurationFilter
max_lease_duration = 60
[service]
port = 0
[ledger]
connection = ${connection}
timeout = 20
${notifications}`;

async function running(url: string, connection: string, more = '') {
  const file = confFile(conf(connection, `[notifications]\nwebhook_url = ${url}\n${more}`));
  const service = await runServiceOn({ environment: {}, configFiles: [file] });
  return { ...service, file };
}

it.for(DIALECTS)('announces refused leases, merged, on %s', async (dialect) => {
  const receiver = await policyServer({ status: 204 });
  const connection = await newLedgerOn(dialect);
  const { post, service } = await running(`${receiver.url}/hidden`, connection, 'source = /test');
  for (let one = 0; one < 20; one += 1) {
    expect(await post(CHECK, TOO_LONG)).toMatchObject({ status: 403 });
  }
  await expect.poll(() => receiver.requests).toHaveLength(1);
  const event = eventIn(receiver.requests[0]?.body ?? '');
  expect(event).toMatchObject({
    source: '/test',
    type: 'io.blazar-enforcement.lease.refused',
    data: {
      filter: 'MaxLeaseDurationFilter',
      count: 1,
      last: {
        operation: 'create',
        outcome: 'rejected',
        message: expect.stringContaining('is 172800 seconds'),
      },
    },
  });
  expect(receiver.requests[0]?.headers['webhook-id']).toBe(event.id);
  await service.close();
  // The rest is in the outbox, for the next process.
  expect(receiver.requests).toHaveLength(1);
});

it('announces each step of a request for more budget, once, signed and in order', async () => {
  const receiver = await policyServer({ status: 204 });
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const { url } = await runServiceOn({
    environment: {},
    configFiles: [],
    values: {
      service: { port: 0, operator_tokens: [OPERATOR_TOKEN] },
      ledger: { connection: await newLedger() },
      enforcement: { enabled_filters: ['UsageBudgetFilter'] },
      notifications: { webhook_url: receiver.url, webhook_secret: secret, events: ['budget.request'] },
    },
  });
  const ask = (path: string, body: object) => askForBudget(url, path, body);
  const wish = { project_id: 'climate', amount: '40', valid_until: '2090-12-31', reason: 'a \u202eworkshop' };
  const { id } = await ask('', wish);
  await ask('', wish);
  await ask(`/${id}/endorse`, {});
  const grant = { amount: '30', reason: 'fine' };
  await Promise.all([ask(`/${id}/grant`, grant), ask(`/${id}/grant`, grant)]);
  await expect.poll(() => receiver.requests).toHaveLength(3);
  const events = receiver.requests.map(({ body }) => eventIn(body));
  expect(events.map(({ data }) => [data.request, data.state])).toEqual([
    [id, 'requested'],
    [id, 'endorsed'],
    [id, 'changed'],
  ]);
  expect(events.at(-1)).toMatchObject({
    type: 'io.blazar-enforcement.budget.request',
    subject: 'projects/climate',
    data: {
      amount: '40',
      until: '2090-12-31T00:00:00Z',
      reason: 'a \u202eworkshop',
      settled: { by: 'operator token', reason: 'fine' },
      granted: { amount: '30', until: '2090-12-31T00:00:00Z' },
    },
  });
  for (const { headers } of receiver.requests) {
    expect(headers['webhook-signature']).toMatch(/^v1,/);
  }
});

it('answers while the receiver is away and the ledger is broken, and counts what it drops', async () => {
  const connection = await newLedger();
  const away = `http://127.0.0.1:${await unusedPort()}/hidden`;
  const { post, url, logger } = await running(away, connection);
  breakLedger(connection, 'outbox');
  expect(await post(CHECK, TOO_LONG)).toMatchObject({ status: 403 });
  await expect
    .poll(() => readSamples(url))
    .toMatchObject({
      'notifications_dropped_total{event="lease.refused"}': 1,
    });
  mendLedger(connection, 'outbox');
  const lines = JSON.stringify(logger.lines);
  expect(lines).toContain('events about refusals and corrections are not written');
  expect(lines).not.toContain('hidden');
});

it('does not start without tables for the ledger', async () => {
  const file = confFile(
    conf('sqlite:///nowhere/at/all.db', '[notifications]\nwebhook_url = http://127.0.0.1:1/'),
  );
  await expect(runServiceOn({ environment: {}, configFiles: [file] })).rejects.toThrow('/nowhere/at/all.db');
  expect(existsSync('/nowhere')).toBe(false);
});

it('says that messages wait when a reload removes the receiver', async () => {
  const connection = await newLedger();
  const { post, file, service, logger } = await running(
    `http://127.0.0.1:${await unusedPort()}/`,
    connection,
  );
  await post(CHECK, TOO_LONG);
  await expect.poll(() => JSON.stringify(logger.lines)).toContain('messages wait:');
  writeFileSync(file, conf(connection, ''));
  expect(await service.reload()).toBe(true);
  expect(logger.lines).toContainEqual(
    expect.objectContaining({
      message: expect.stringContaining('nothing delivers them with this configuration'),
      fields: { filter: 'notifications', messages: 1 },
    }),
  );
});
