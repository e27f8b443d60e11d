/** A check in process, relative to the equivalent filter of openstack/blazar. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { formatContext, formatLease, UsageEnforcement } from '../src/index.ts';
import { amount } from './harness/amount.ts';
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
import { blazarSource } from './peers/blazar-source.ts';
import { CAPTURED_SECONDS, capturedRequests, ROOT } from './requests.ts';

const ROUNDS_OF_REQUESTS = amount(32, 1);
const NANOSECONDS = 1e9;
/** Passes the source to the processes of the subjects. */
const PLACE = 'BENCH_BLAZAR';
const placeSchema = z.object({ python: z.string(), folder: z.string() });
const turnSchema = z.object({ seconds: z.number(), processor: z.number() });

/**
 * The work for each lease: only the check; also merging its reservations and allocations; or all calls of
 * Blazar's manager, including the caller's context.
 */
type Work = 'check' | 'format' | 'whole';

/** The arguments of Blazar's manager: lease values, reservations, and allocations by resource type. */
function apart() {
  return capturedRequests().map(({ context, lease }) => {
    const { reservations = [], ...values } = lease;
    return {
      context,
      values,
      reservations: reservations.map(({ allocations: _, ...reservation }) => reservation),
      allocations: Object.fromEntries(
        reservations.map(({ resource_type, allocations = [] }) => [String(resource_type), allocations]),
      ),
    };
  });
}

async function ours(work: Work): Promise<Subject> {
  const enforcement = await UsageEnforcement.load({
    environment: {},
    values: {
      enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: CAPTURED_SECONDS },
    },
  });
  const ready = capturedRequests();
  const unformatted = apart();
  const details = {
    authUrl: ready[0]?.context.auth_url ?? '',
    regionName: ready[0]?.context.region_name ?? null,
  };
  const check = async (request: (typeof ready)[number]) => {
    const { allowed, failed } = await enforcement.checkCreate(request);
    if (!allowed || failed) {
      throw new Error('expected the lease to be allowed');
    }
  };
  const once: Record<Work, () => Promise<void>> = {
    async check() {
      for (const request of ready) {
        await check(request);
      }
    },
    async format() {
      for (const { context, values, reservations, allocations } of unformatted) {
        await check({ context, lease: formatLease(values, reservations, allocations) });
      }
    },
    async whole() {
      for (const { values, reservations, allocations } of unformatted) {
        const context = formatContext(values, details);
        await check({ context, lease: formatLease(values, reservations, allocations) });
      }
    },
  };
  return {
    operations: ROUNDS_OF_REQUESTS * ready.length,
    async batch() {
      for (let round = 0; round < ROUNDS_OF_REQUESTS; round += 1) {
        await once[work]();
      }
    },
    async processor() {
      const { user, system } = process.cpuUsage();
      return (user + system) * 1000;
    },
    close: () => enforcement.close(),
  };
}

async function theirs(work: Work): Promise<Subject> {
  const { python, folder } = placeSchema.parse(JSON.parse(process.env[PLACE] ?? '{}'));
  const script = join(ROOT, 'bench/peers/upstream_filter.py');
  const child = spawn(python, [script, folder, String(CAPTURED_SECONDS)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  child.once('exit', (code) => lines.emit('error', new Error(`upstream_filter.py ended with ${code}`)));
  const ask = async (question: unknown): Promise<unknown> => {
    const answered = once(lines, 'line');
    child.stdin.write(`${JSON.stringify(question)}\n`);
    const [line] = await answered;
    return JSON.parse(String(line));
  };
  const requests = capturedRequests();
  await ask(requests);
  let used = 0;
  return {
    operations: ROUNDS_OF_REQUESTS * requests.length,
    async batch() {
      const { seconds, processor } = turnSchema.parse(await ask([work, ROUNDS_OF_REQUESTS]));
      used += processor * NANOSECONDS;
      return { milliseconds: seconds * 1000 };
    },
    processor: async () => used,
    close() {
      child.removeAllListeners('exit');
      child.stdin.end();
    },
  };
}

/** Only for `measure`, which finds the source. */
export const suite: Suite = {
  name: 'upstream',
  file: import.meta.url,
  rounds: 15,
  turnMilliseconds: 60,
  subjects: {
    checkCreate: () => ours('check'),
    'formatLease and checkCreate': () => ours('format'),
    'formatContext, formatLease and checkCreate': () => ours('whole'),
    'upstream, check_create of the filter': () => theirs('check'),
    'upstream, format_lease and check_create of the filter': () => theirs('format'),
    'upstream, check_create of UsageEnforcement': () => theirs('whole'),
  },
  comparisons: [],
  notes: [],
};

async function measure({ quick }: Scale): Promise<Run> {
  const { python, folder, remove } = blazarSource();
  process.env[PLACE] = JSON.stringify({ python, folder });
  try {
    return await runOnce(suite, quick ? QUICK : suite);
  } finally {
    remove();
  }
}

const comparisons: Comparison[] = [
  {
    name: 'formatting included',
    measured: 'formatLease and checkCreate',
    comparedWith: 'upstream, format_lease and check_create of the filter',
    of: 'rate',
    target: { atLeast: 2.4 },
  },
  {
    name: 'formatting included, by processor time',
    measured: processorOf('formatLease and checkCreate'),
    comparedWith: processorOf('upstream, format_lease and check_create of the filter'),
    of: 'rate',
  },
  {
    name: 'without formatting',
    measured: 'checkCreate',
    comparedWith: 'upstream, check_create of the filter',
    of: 'rate',
  },
  {
    name: 'as Blazar calls it',
    measured: 'formatContext, formatLease and checkCreate',
    comparedWith: 'upstream, check_create of UsageEnforcement',
    of: 'rate',
  },
];

export const trial: Trial = {
  name: 'upstream',
  file: import.meta.url,
  measure,
  comparisons,
  notes: [
    'One operation is MaxLeaseDurationFilter, which allows the captured check-create-physical-host, on 64 different days. Ours is an awaited UsageEnforcement.checkCreate: it validates the request, and returns the decision with its times.',
    "Upstream's is the filter's own check_create, alone: without the chain around it. Its dates are datetime already; ours are the texts of the request, which the check parses.",
    'Formatting: formatLease beside format_lease; both put the allocations into the reservations. By processor time, collecting garbage and compiling in other threads counts, too.',
    'As Blazar calls it: check_create of UsageEnforcement, with the context of a caller whose catalog has three services, and what our library does in its place.',
    'Needs the source of openstack/blazar, and the packages of Python that it imports: `BLAZAR_SOURCE` names its folder.',
  ],
};
