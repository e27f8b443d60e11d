/** on-end through the outbox, from the chain to a real service and back. */
import { describe, expect, it, vi } from 'vitest';
import { policyServer } from '../support/policy-server.ts';
import { createPhysicalHost } from '../support/requests.ts';
import { type LedgerSetup, onLedger } from './on-ledger.ts';

const SOON = 5000;

async function durable(options: object = {}, setup: Partial<LedgerSetup> = {}) {
  const service = await policyServer({ status: 204 });
  const chain = await onLedger({
    enabled: ['ExternalServiceFilter'],
    ...setup,
    options: {
      external_service_on_end_endpoint: `${service.url}/on-end`,
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

describe('durable delivery', () => {
  it('delivers an end', async () => {
    const { enforcement, service } = await durable();
    expect(await enforcement.onEnd(ended('a'))).toMatchObject({ failed: false });
    await vi.waitFor(() => expect(service.requests).toHaveLength(1), SOON);
    expect(JSON.parse(service.requests[0]?.body ?? '')).toEqual(ended('a'));
  });
});
