/** Measures the cost of tracing without an OpenTelemetry SDK, relative to the same code without tracing. */
import type { CreateRequest } from '../src/index.ts';
import { amount } from './harness/amount.ts';
import { median } from './harness/results.ts';
import { QUICK, runOnce } from './harness/run.ts';
import {
  type Comparison,
  processorOf,
  type Run,
  type Scale,
  type Subject,
  type Suite,
  type Trial,
} from './harness/suite.ts';
import { CAPTURED_SECONDS, capturedRequests } from './requests.ts';
import { server } from './service.ts';
import { removeTracing } from './tracing/remove.ts';

/** Long enough to include garbage collection in each. */
const ROUNDS_OF_REQUESTS = amount(128, 1);
const BATCH = amount(1000, 64);
/** Processes per subject. Their speed differs by some percent, by memory layout and compilation. */
const PROCESSES = 5;

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

const SUBJECTS = {
  checkCreate: () => checking(true),
  'checkCreate, again': () => checking(true),
  'checkCreate without tracing': () => checking(false),
  'POST /check-create': () => server('service, tracing', BATCH),
  'POST /check-create, again': () => server('service, tracing', BATCH),
  'POST /check-create without tracing': () => server('service, no tracing', BATCH),
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

/** Only for `measure`, which starts each several times. */
export const suite: Suite = {
  name: 'tracing',
  file: import.meta.url,
  rounds: 11,
  turnMilliseconds: 0,
  apart: true,
  subjects: SUBJECTS,
  comparisons: [],
  notes: [],
};

async function measure({ quick }: Scale): Promise<Run> {
  const runs: Run[] = [];
  for (let process = 0; process < (quick ? 1 : PROCESSES); process += 1) {
    runs.push(await runOnce(suite, quick ? QUICK : suite));
  }
  const names = [...(runs[0]?.keys() ?? [])];
  return new Map(names.map((name) => [name, median(runs.map((run) => run.get(name) ?? Number.NaN))]));
}

export const trial: Trial = {
  name: 'tracing',
  file: import.meta.url,
  measure,
  comparisons,
  notes: [
    'Processor time of a checkCreate with MaxLeaseDurationFilter, and of a POST /check-create at the service with a decision log. No SDK of OpenTelemetry is loaded, as in most installations.',
    'Without tracing: a hook of the module loader puts functions that do nothing in place of `src/base/tracing.ts`; the rest is the same code. Both are loaded through the hook.',
    `Each has ${PROCESSES} processes of its own in each run, one after the other, with short turns in rotation; their median counts. "Beside itself" is a second process with tracing: what the ratio differs from 1 by chance, which no smaller cost can be told from.`,
  ],
};
