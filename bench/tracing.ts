/** What tracing costs while no SDK of OpenTelemetry listens: beside the same code without it. */
import type { CreateRequest } from '../src/index.ts';
import { type Comparison, processorOf, type Subject, type Suite } from './harness/suite.ts';
import { saturate } from './load.ts';
import { CAPTURED_SECONDS, capturedRequests } from './requests.ts';
import { type ServerKind, ServerProcess } from './server-process.ts';
import { removeTracing } from './tracing/remove.ts';

/** Long enough for the garbage collector to have its part in each. */
const ROUNDS_OF_REQUESTS = 128;
const BATCH = 1000;

async function checking(kept: boolean): Promise<Subject> {
  await removeTracing({ kept });
  const { UsageEnforcement } = await import('../src/index.ts');
  const enforcement = await UsageEnforcement.load({
    environment: {},
    values: {
      enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: CAPTURED_SECONDS },
    },
  });
  const requests = capturedRequests();
  const check = async (request: CreateRequest) => {
    const { allowed, failed } = await enforcement.checkCreate(request);
    if (!allowed || failed) {
      throw new Error('expected the lease to be allowed');
    }
  };
  return {
    operations: ROUNDS_OF_REQUESTS * requests.length,
    async batch() {
      for (let round = 0; round < ROUNDS_OF_REQUESTS; round += 1) {
        for (const request of requests) {
          await check(request);
        }
      }
    },
    processor: async () => processorNanoseconds(),
    close: () => enforcement.close(),
  };
}

function processorNanoseconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

async function serving(kind: ServerKind): Promise<Subject> {
  const running = await ServerProcess.start(kind);
  return {
    operations: BATCH,
    batch: async () => ({ milliseconds: await saturate(running.url, BATCH) }),
    processor: () => running.processor(),
    close: () => running.stop(),
  };
}

const SUBJECTS = {
  checkCreate: () => checking(true),
  'checkCreate, again': () => checking(true),
  'checkCreate without tracing': () => checking(false),
  'POST /check-create': () => serving('service, tracing'),
  'POST /check-create, again': () => serving('service, tracing'),
  'POST /check-create without tracing': () => serving('service, no tracing'),
};

const comparisons = ['checkCreate', 'POST /check-create'].flatMap((what): Comparison[] => {
  const row = { measured: processorOf(what), of: 'time' } as const;
  return [
    {
      ...row,
      name: what,
      comparedWith: processorOf(`${what} without tracing`),
      target: { atMost: 1.01 },
    },
    { ...row, name: `${what}, beside itself`, comparedWith: processorOf(`${what}, again`) },
  ];
});

export const suite: Suite = {
  name: 'tracing',
  file: import.meta.url,
  rounds: 41,
  turnMilliseconds: 0,
  subjects: SUBJECTS,
  comparisons,
  notes: [
    'Processor time of a checkCreate with MaxLeaseDurationFilter, and of a POST /check-create at the service with a decision log. No SDK of OpenTelemetry is loaded, as in most installations.',
    'Without tracing: a hook of the module loader puts functions that do nothing in place of `src/tracing.ts`; the rest is the same code. Both are loaded through the hook.',
    'Each has a process of its own; 41 short turns in rotation. "Beside itself" is a second process with tracing: what the ratio differs from 1 by chance, which no smaller cost can be told from.',
  ],
};
