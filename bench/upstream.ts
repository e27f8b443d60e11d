/** A check in process, beside the filter of openstack/blazar that it stands for. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { formatContext, formatLease, UsageEnforcement } from '../src/index.ts';
import { runOnce } from './harness/run.ts';
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

const ROUNDS_OF_REQUESTS = 32;
const NANOSECONDS = 1e9;
/** Where the source is, for the processes of the subjects. */
const PLACE = 'BENCH_BLAZAR';
const placeSchema = z.object({ python: z.string(), folder: z.string() });
const turnSchema = z.object({ seconds: z.number(), processor: z.number() });

/** As Blazar's manager calls it: the values of the lease, its reservations, and the allocations by resource type. */
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

async function ours(withFormat: boolean): Promise<Subject> {
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
  const formatAndCheck = ({ values, reservations, allocations }: (typeof unformatted)[number]) =>
    check({
      context: formatContext(values, details),
      lease: formatLease(values, reservations, allocations),
    });
  return {
    operations: ROUNDS_OF_REQUESTS * ready.length,
    async batch() {
      for (let round = 0; round < ROUNDS_OF_REQUESTS; round += 1) {
        if (withFormat) {
          for (const request of unformatted) {
            await formatAndCheck(request);
          }
        } else {
          for (const request of ready) {
            await check(request);
          }
        }
      }
    },
    async processor() {
      const { user, system } = process.cpuUsage();
      return (user + system) * 1000;
    },
    close: () => enforcement.close(),
  };
}

async function theirs(withFormat: boolean): Promise<Subject> {
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
      const { seconds, processor } = turnSchema.parse(await ask([withFormat, ROUNDS_OF_REQUESTS]));
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

/** Its subjects are for `measure`, which finds the source. */
export const suite: Suite = {
  name: 'upstream',
  file: import.meta.url,
  rounds: 15,
  turnMilliseconds: 60,
  subjects: {
    checkCreate: () => ours(false),
    'format and checkCreate': () => ours(true),
    'upstream, check_create': () => theirs(false),
    'upstream, format and check_create': () => theirs(true),
  },
  comparisons: [],
  notes: [],
};

async function measure({ quick }: Scale): Promise<Run> {
  const { python, folder, remove } = blazarSource();
  process.env[PLACE] = JSON.stringify({ python, folder });
  try {
    return await runOnce(suite, quick ? { rounds: 1, turnMilliseconds: 0 } : suite);
  } finally {
    remove();
  }
}

const inProcessorTime = (measured: string, comparedWith: string) =>
  ({ measured: processorOf(measured), comparedWith: processorOf(comparedWith), of: 'rate' }) as const;

const comparisons: Comparison[] = [
  {
    name: 'formatting included',
    ...inProcessorTime('format and checkCreate', 'upstream, format and check_create'),
    target: { atLeast: 2 },
  },
  { name: 'without formatting', ...inProcessorTime('checkCreate', 'upstream, check_create') },
  {
    name: 'formatting included on our side alone',
    ...inProcessorTime('format and checkCreate', 'upstream, check_create'),
  },
];

export const trial: Trial = {
  name: 'upstream',
  measure,
  comparisons,
  notes: [
    'One operation is MaxLeaseDurationFilter, which allows the captured check-create-physical-host, on 64 different days, by processor time. Ours is an awaited UsageEnforcement.checkCreate: it validates the request, and returns the decision with its times.',
    "Upstream's is the filter's own check_create, alone: without the chain around it, and without the endpoint of Keystone that its format_context looks up. Its dates are datetime already; ours are the texts of the request, which the check parses.",
    'Formatting: formatContext and formatLease, beside format_lease; both put the allocations into the reservations.',
    'Needs the source of openstack/blazar, and the packages of Python that it imports: `BLAZAR_SOURCE` names its folder.',
  ],
};
