/** Commits whose outcome is unknown, and the trace that they belong to. */
import { context, trace } from '@opentelemetry/api';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import type { InDoubtCommit } from '../../src/ledger/in-doubt-commits.ts';
import { unregisterSdk } from '../support/hostile-sdk.ts';

const DOUBT: InDoubtCommit = {
  undo: { lease: 1n, projectId: 'climate', before: undefined, revision: 1n, deltas: new Map() },
  author: { operation: 'undo', who: 'blazar', requestId: null, reason: null },
};

beforeAll(() => {
  // Each module asks for the SDK once.
  vi.resetModules();
});

afterAll(() => {
  trace.disable();
  context.disable();
  unregisterSdk();
  vi.resetModules();
});

it('is settled outside of the trace of the request that has left it', async () => {
  const provider = new NodeTracerProvider();
  provider.register();
  onTestFinished(() => provider.shutdown());
  const { InDoubtCommits } = await import('../../src/ledger/in-doubt-commits.ts');
  const traced: boolean[] = [];
  const doubts = new InDoubtCommits({
    folder: undefined,
    logger: undefined,
    ledgerId: async () => 'ledger',
    takeBack: async () => {
      traced.push(trace.getActiveSpan() !== undefined);
      return true;
    },
    count: () => {},
  });
  onTestFinished(() => doubts.close());
  trace.getTracer('test').startActiveSpan('request', (span) => {
    doubts.add(DOUBT, undefined);
    expect(trace.getActiveSpan()).toBe(span);
    span.end();
  });
  await expect.poll(() => traced).toEqual([false]);
});
