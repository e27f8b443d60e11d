/** Measures requests per second of the policy service, relative to the smallest server with equal input. */
import { amount } from './harness/amount.ts';
import { processorOf, type Subject, type Suite } from './harness/suite.ts';
import { LEASES, saturate } from './load.ts';
import { type ServerKind, ServerProcess } from './server-process.ts';

const BATCH = amount(4000, 64);

/** One operation is a request; a batch has so many. */
export async function server(kind: ServerKind, batch = BATCH, questions = LEASES): Promise<Subject> {
  const running = await ServerProcess.start(kind);
  return {
    operations: batch,
    batch: async () => ({ milliseconds: await saturate(running.url, batch, questions) }),
    processor: () => running.processor(),
    close: () => running.stop(),
  };
}

const FULL = 'service, decision log' satisfies ServerKind;

export const suite: Suite = {
  name: 'service',
  file: import.meta.url,
  rounds: 7,
  turnMilliseconds: 700,
  subjects: {
    'node:http': () => server('node:http'),
    Koa: () => server('Koa'),
    'Koa, co-body': () => server('Koa, co-body'),
    service: () => server('service'),
    [FULL]: () => server(FULL),
  },
  comparisons: [
    { name: 'requests', measured: FULL, comparedWith: 'node:http', of: 'rate', target: { atLeast: 0.7 } },
    {
      name: 'requests, by its processor',
      measured: processorOf(FULL),
      comparedWith: processorOf('node:http'),
      of: 'rate',
    },
    { name: 'decision log', measured: FULL, comparedWith: 'service', of: 'rate', target: { atLeast: 0.95 } },
    {
      name: 'decision log, by its processor',
      measured: processorOf(FULL),
      comparedWith: processorOf('service'),
      of: 'rate',
    },
    { name: 'empty Koa', measured: 'Koa', comparedWith: 'node:http', of: 'rate' },
    { name: 'Koa that reads', measured: 'Koa, co-body', comparedWith: 'node:http', of: 'rate' },
  ],
  notes: [
    'POST /check-create with the captured check-create-physical-host, compact as Blazar sends it, on 64 different days. The service has MaxLeaseDurationFilter, which allows; node:http collects the body, parses it and answers 204; an empty Koa answers 204 and reads nothing; the other one reads the body with co-body and parses it.',
    'Every server has a process of its own, with its 16 callers (autocannon) in another one. The callers never sleep: waking them would be charged to a server that is slower than they are, and not to one that is faster.',
    '"By its processor": requests in a second of processor time of the server. Where that is much more than its requests a second, something else than the server was the limit, or other programs were running.',
  ],
};
