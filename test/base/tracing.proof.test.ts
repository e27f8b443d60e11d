/** An SDK that is broken makes traces worse, and nothing else. */
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { valuesOnly } from '../support/files.ts';
import { HOSTILE, type Hostility, registerHostileSdk, unregisterSdk } from '../support/hostile-sdk.ts';
import { createLasting } from '../support/requests.ts';

const KINDS = Object.keys(HOSTILE) as Hostility[];

beforeEach(() => {
  // Each module asks for the SDK once.
  vi.resetModules();
});

afterAll(() => {
  unregisterSdk();
  vi.resetModules();
});

describe.each(KINDS)('an SDK that %s', (how) => {
  it('changes no verdict', async () => {
    registerHostileSdk(how);
    const { UsageEnforcement } = await import('../../src/index.ts');
    const { isTraced } = await import('../../src/base/tracing.ts');
    const enforcement = await UsageEnforcement.load(
      valuesOnly({ enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 3600 } }),
    );
    expect(isTraced()).toBe(true);
    expect(await enforcement.checkCreate(createLasting(60))).toMatchObject({ allowed: true });
    expect(await enforcement.checkCreate(createLasting(7200))).toMatchObject({
      allowed: false,
      failed: false,
    });
    await enforcement.close();
  });

  it('lets work be done once, and end as it ends', async () => {
    registerHostileSdk(how);
    const { inSpan } = await import('../../src/base/tracing.ts');
    const facts = { name: 'work', attributes: {} };
    const work = vi.fn(() => 7);
    expect(inSpan(facts, work)).toBe(7);
    expect(work).toHaveBeenCalledTimes(1);
    const broken = new Error('broken');
    await expect(inSpan(facts, () => Promise.reject(broken))).rejects.toBe(broken);
    expect(() =>
      inSpan(facts, () => {
        throw broken;
      }),
    ).toThrow(broken);
  });

  it('gives no headers and no ids that are not valid, and holds up no end', async () => {
    registerHostileSdk(how);
    const { traceHeaders, traceId } = await import('../../src/base/trace-context.ts');
    const { endTracing, flushTracing } = await import('../../src/base/tracing.ts');
    expect([traceHeaders(), traceId()]).toEqual([{}, undefined]);
    expect(flushTracing()).toBeUndefined();
    expect(await endTracing(1)).toBeUndefined();
  });

  it('keeps no request from its listener', async () => {
    registerHostileSdk(how);
    const traced = await import('../../src/server/traced-requests.ts');
    const served = vi.fn((request: IncomingMessage) => {
      traced.identifyRequestSpan('X-Id', 'req-1');
      traced.nameRequestSpan(request, '/check-create');
    });
    const request = { method: 'POST', url: '/check-create', headers: {}, socket: {} } as IncomingMessage;
    const response = new EventEmitter() as ServerResponse;
    traced.tracedRequests(served, new Set(), () => undefined)(request, response);
    response.emit('close');
    expect(served).toHaveBeenCalledTimes(1);
  });
});

it('work that the SDK calls twice, or later, is done once', async () => {
  registerHostileSdk('returns nothing');
  const { within } = await import('../../src/base/tracing.ts');
  const later: (() => void)[] = [];
  const eager = (_context: unknown, work: () => void) => {
    work();
    work();
    later.push(work);
    throw new Error('hostile SDK');
  };
  const listening = { api: { context: { with: eager } } } as unknown as Parameters<typeof within>[0];
  const work = vi.fn(() => 7);
  expect(within(listening, {} as never, work)).toBe(7);
  for (const again of later) {
    again();
  }
  expect(work).toHaveBeenCalledTimes(1);
});
