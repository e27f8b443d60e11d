/** Estimates with filters that ask other services: three times at most, and nothing is recorded there. */
import { createServer, type IncomingMessage } from 'node:http';
import { json as jsonOf } from 'node:stream/consumers';
import { describe, expect, it, vi } from 'vitest';
import type { CreateRequest } from '../../../src/index.ts';
import { onLedger } from '../../filters/on-ledger.ts';
import { lasting, withBudgets } from '../../filters/usage-budgets.ts';
import { filterSource } from '../../support/filter-folder.ts';
import { listen } from '../../support/listening.ts';

/** A policy service that writes down what it is asked. `undefined` = it breaks. */
async function policyService(allows: (request: CreateRequest) => boolean | undefined) {
  const asked: string[] = [];
  const keys: unknown[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const body = (await jsonOf(request)) as CreateRequest;
    asked.push(`${request.url} ${String(body.lease.end_date)}`);
    keys.push(request.headers['idempotency-key']);
    const allowed = allows(body);
    response.statusCode = allowed === undefined ? 500 : allowed ? 204 : 403;
    response.end(allowed ? undefined : JSON.stringify({ message: 'not here' }));
  });
  const { port } = await listen(server);
  const url = `http://127.0.0.1:${port}/`;
  const options = {
    external_service_base_endpoint: url,
    external_service_commit_create_endpoint: `${url}commit-create`,
  };
  return { asked, keys, options };
}

const THREE = [{ resource_type: 'physical:host', min: 1, max: 4 }];

describe('a filter that asks another service', () => {
  it('is asked three times at most, and its commit never', async () => {
    const { asked, keys, options } = await policyService(() => true);
    const { enforcement } = await withBudgets(
      [
        { amount: '10', from: '2026-11-01', until: '2027-01-01' },
        { amount: '5000', from: '2027-01-01', until: '2028-01-01' },
      ],
      { ...options, external_service_delivery: 'durable' },
      { enabled: ['ExternalServiceFilter', 'UsageBudgetFilter'] },
    );
    const { suggestions, searched } = await enforcement.estimate(lasting(10, { reservations: THREE }));
    expect(suggestions.map(({ change }) => change)).toEqual(['shorter', 'smaller']);
    expect(searched).toContain('Another service was not asked about a later one: it was asked often enough.');
    expect(asked).toEqual([
      '/check-create 2026-12-01T19:00:00.000Z',
      '/check-create 2026-12-01T11:30:00Z',
      '/check-create 2026-12-01T19:00:00.000Z',
    ]);
    expect(new Set(keys).size).toBe(3);
  });

  it('may refuse what all others allow: that is not suggested', async () => {
    const { options } = await policyService(({ lease }) => String(lease.end_date).includes('19:00'));
    const { enforcement } = await withBudgets(['10'], options, {
      enabled: ['ExternalServiceFilter', 'UsageBudgetFilter'],
    });
    const { suggestions, searched } = await enforcement.estimate(lasting(10, { reservations: THREE }));
    expect(suggestions.map(({ change }) => change)).toEqual(['smaller']);
    expect(searched).toContain('One that is shorter was refused in the end.');
  });

  it('that alone refuses is asked about half the time and half the resources', async () => {
    const { asked, options } = await policyService(
      ({ lease }) => (lease.reservations?.[0]?.max as number) <= 3,
    );
    const { enforcement } = await onLedger({ enabled: ['ExternalServiceFilter'], options });
    const { suggestions, searched } = await enforcement.estimate(lasting(10, { reservations: THREE }));
    expect(suggestions.map(({ text }) => text)).toEqual(['Ask for at most 3 instead of 4 of physical:host.']);
    expect(searched).toMatch(/^ExternalServiceFilter calls another service/);
    expect(asked).toHaveLength(3);
  });

  it('ends the search where it fails', async () => {
    let calls = 0;
    const { options } = await policyService(() => {
      calls += 1;
      return calls > 1 ? undefined : true;
    });
    const { enforcement } = await withBudgets(['10'], options, {
      enabled: ['ExternalServiceFilter', 'UsageBudgetFilter'],
    });
    const { suggestions, searched } = await enforcement.estimate(lasting(20));
    expect(suggestions).toEqual([]);
    expect(searched).toContain('A filter failed meanwhile.');
  });

  it('may be any that does not answer at once', async () => {
    const asked: unknown[] = [];
    vi.stubGlobal('asked', asked);
    const rule = 'asked.push(lease.end_date); return Promise.resolve(allow());';
    const { enforcement } = await withBudgets(
      ['10'],
      {},
      {
        enabled: ['SlowFilter', 'UsageBudgetFilter'],
        files: { SlowFilter: filterSource('SlowFilter', { create: rule }) },
      },
    );
    const { suggestions } = await enforcement.estimate(lasting(20));
    expect(suggestions.map(({ change }) => change)).toEqual(['shorter']);
    expect(asked).toHaveLength(2);
  });
});
