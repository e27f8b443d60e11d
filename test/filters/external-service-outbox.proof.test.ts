/** on-end through the outbox, from the chain to a real service and back. */
import { describe, expect, it, vi } from 'vitest';
import { ALLOWED, REJECTED } from '../support/decisions.ts';
import { breakLedger, mendLedger } from '../support/ledgers.ts';
import { type PolicyServer, policyServer } from '../support/policy-server.ts';
import { createPhysicalHost } from '../support/requests.ts';
import { type LedgerSetup, onLedger } from './on-ledger.ts';

const SOON = 30_000;

async function durable(options: object = {}, setup: Partial<LedgerSetup> = {}, commits = false) {
  const service = await policyServer({ status: 204 });
  const chain = await onLedger({
    enabled: ['ExternalServiceFilter'],
    ...setup,
    options: {
      external_service_on_end_endpoint: `${service.url}/on-end`,
      ...(commits ? { external_service_commit_create_endpoint: `${service.url}/commit-create` } : {}),
      external_service_delivery: 'durable',
      external_service_breaker_failures: 0,
      ...options,
    },
  });
  return { service, ...chain };
}

const ended = (id: string) => {
  const { context, lease } = createPhysicalHost();
  return { context, lease: { ...lease, id } };
};

/** Refuses what the filters before it have recorded. */
const REFUSER = `
import { BaseFilter, allow, reject } from 'blazar-enforcement';
export class RefusingFilter extends BaseFilter {
  checkCreate() { return allow(); }
  checkUpdate() { return allow(); }
  onEnd() {}
  commitCreate() { return reject('no'); }
}`;

const bodiesOf = ({ requests }: PolicyServer, path: string): unknown[] =>
  requests.flatMap(({ url, body }) => (url === path ? [JSON.parse(body)] : []));

it('what must be undone is undone also if the outbox cannot be written at that moment', async () => {
  const { service, connection, enforcement, logger } = await durable(
    {},
    { enabled: ['ExternalServiceFilter', 'RefusingFilter'], files: { RefusingFilter: REFUSER } },
    true,
  );
  service.answer = (request, response) => {
    if (request.url === '/commit-create') {
      breakLedger(connection, 'outbox');
    }
    response.writeHead(204).end();
  };
  const { context, lease } = createPhysicalHost();
  expect(await enforcement.checkCreate({ context, lease })).toMatchObject(REJECTED);
  expect(bodiesOf(service, '/commit-create')).toHaveLength(1);
  expect(bodiesOf(service, '/on-end')).toEqual([]);
  await vi.waitFor(
    () =>
      expect(logger.lines.map(({ message }) => message)).toContain(
        'a message in the outbox cannot be released yet: it is sent when that succeeds',
      ),
    SOON,
  );
  mendLedger(connection, 'outbox');
  await vi.waitFor(() => expect(bodiesOf(service, '/on-end')).toHaveLength(1), SOON);
});

describe('durable delivery', () => {
  it('waits for as long as the service asks, in seconds or until a date', async () => {
    for (const after of ['3600', new Date(Date.now() + 3_600_000).toUTCString()]) {
      const { enforcement, service, query } = await durable();
      service.answer = { status: 503, headers: { 'Retry-After': after } };
      await enforcement.onEnd(ended('a'));
      await vi.waitFor(() => expect(query('SELECT attempts FROM outbox')).toEqual([{ attempts: 1n }]), SOON);
      service.answer = { status: 204 };
      await enforcement.onEnd(ended('b'));
      // Without the header it would be tried again after a second at the latest.
      await new Promise((resolve) => setTimeout(resolve, 1200));
      expect(service.requests).toHaveLength(1);
    }
  });

  it('writes and sends nothing in a dry run', async () => {
    const { enforcement, service, query } = await durable({}, {}, true);
    const { context, lease } = createPhysicalHost();
    expect(await enforcement.onEnd(ended('a'), { dryRun: true })).toMatchObject({
      failed: false,
      outcomes: [],
    });
    expect(await enforcement.checkCreate({ context, lease }, { dryRun: true })).toMatchObject(ALLOWED);
    // Ids are not used twice: none was ever written.
    expect(query("SELECT * FROM sqlite_sequence WHERE name = 'outbox'")).toEqual([]);
    expect(service.requests).toEqual([]);
  });

  it('is sent directly if it cannot be written', async () => {
    const { enforcement, service, connection, logger } = await durable();
    breakLedger(connection, 'outbox');
    expect(await enforcement.onEnd(ended('a'))).toMatchObject({ failed: false });
    expect(service.requests).toHaveLength(1);
    expect(JSON.stringify(logger.lines)).toContain('the end of a lease was sent directly');
  });

  it('fails if it can neither be written nor sent, and says both', async () => {
    const { enforcement, service, connection, logger } = await durable();
    breakLedger(connection, 'outbox');
    service.server.closeAllConnections();
    service.server.close();
    const report = await enforcement.onEnd(ended('a'));
    expect(report).toMatchObject({
      failed: true,
      warnings: ['ExternalServiceFilter could not be told that the lease has ended.'],
    });
    expect(JSON.stringify(logger.lines)).toContain('no such table: outbox');
    expect(JSON.stringify(logger.lines)).toContain('sent directly: ');
  });
});
