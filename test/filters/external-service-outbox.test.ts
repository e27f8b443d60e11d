/** on-end through the outbox, from the chain to a real service and back. */
import { describe, expect, it, vi } from 'vitest';
import { breakLedger, mendLedger } from '../support/ledgers.ts';
import { type PolicyServer, policyServer } from '../support/policy-server.ts';
import { createPhysicalHost } from '../support/requests.ts';
import { type LedgerSetup, onLedger } from './on-ledger.ts';

const SOON = 5000;

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

describe('what must be undone', () => {
  it('is undone also if the outbox cannot be written at that moment', async () => {
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
    expect(await enforcement.checkCreate({ context, lease })).toMatchObject({ allowed: false });
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
});

describe('durable delivery', () => {
  it('delivers an end', async () => {
    const { enforcement, service } = await durable();
    expect(await enforcement.onEnd(ended('a'))).toMatchObject({ failed: false });
    await vi.waitFor(() => expect(service.requests).toHaveLength(1), SOON);
    expect(JSON.parse(service.requests[0]?.body ?? '')).toEqual(ended('a'));
  });
});
