/** Searches for the most expensive request: how long it blocks the service, and its memory. */
import { request as send } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Comparison, Scale, Trial } from './harness/suite.ts';
import { ServerProcess } from './server-process.ts';
import type { Observed } from './worst-case/observed.ts';
import { type ExpensiveRequest, expensiveRequests } from './worst-case/requests.ts';

/** The default of `body_limit`. */
const BODY_LIMIT = 8_388_608;
/** The fraction of it with which all requests are tried, to find the expensive ones. */
const TRIED = 8;
/** The number of the most expensive requests sent at full length, per figure and endpoint. */
const MOST_EXPENSIVE = 6;
/** The minimum counts: other load can only increase a figure. */
const TIMES = 3;
/** The minimum for comparisons: for young objects, V8 alone takes up to 32 MiB, whatever the request. */
const LEAST_BYTES = 2_097_152;
/** For work after the response. */
const AFTERWARDS_MS = 60;

const LONGEST = 'longest time allowed';

const ENDPOINTS = [
  '/check-create',
  '/check-update',
  '/on-end',
  '/kubernetes/admission',
  '/kubernetes/validation',
  '/skypilot/admin-policy',
  '/',
] as const;

interface Result extends Observed {
  readonly request: string;
  readonly bytes: number;
}

async function measure({ quick, requests }: Scale): Promise<Map<string, number>> {
  const run = new Map([[LONGEST, 100e6]]);
  let service = await ServerProcess.start('service, all of it');
  const observed = async (request: ExpensiveRequest, times = 1): Promise<Result> => {
    const all: Observed[] = [];
    const body = request.body();
    for (let time = 0; time < times; time += 1) {
      await service.observe();
      await answerOf(service.url, request, body).catch((thrown: unknown) => {
        throw new Error(`${request.name}: no answer`, { cause: thrown });
      });
      await pause(AFTERWARDS_MS);
      all.push(await service.observed());
    }
    return {
      request: request.name,
      bytes: body.length,
      heldNanoseconds: Math.min(...all.map(({ heldNanoseconds }) => heldNanoseconds)),
      peakBytes: Math.min(...all.map(({ peakBytes }) => peakBytes)),
    };
  };
  try {
    const tried: Result[] = [];
    const bytes = quick ? 65_536 : BODY_LIMIT / TRIED;
    const all = [...expensiveRequests(bytes)];
    const step = Math.max(1, Math.floor(all.length / (requests ?? (quick ? 30 : all.length))));
    for (const endpoint of ENDPOINTS) {
      // Counted per endpoint, so that every one is tried.
      for (const [index, request] of all.filter(({ name }) => isAt(name, endpoint)).entries()) {
        if (index % step === 0) {
          tried.push(await observed(request));
        }
      }
    }
    const chosen = new Set(
      ENDPOINTS.flatMap((endpoint) => mostExpensive(tried, endpoint, quick ? 1 : MOST_EXPENSIVE)),
    );
    const found: Result[] = [];
    // Restarted, to measure without leftovers of the requests above.
    await service.stop();
    service = await ServerProcess.start('service, all of it');
    for (const request of expensiveRequests(quick ? bytes : BODY_LIMIT)) {
      if (chosen.has(request.name)) {
        found.push(await observed(request, quick ? 1 : TIMES));
      }
    }
    for (const endpoint of ENDPOINTS) {
      const own = found.filter(({ request }) => isAt(request, endpoint));
      const held = worst(own, heldFor);
      const memory = worst(own, memoryFor);
      run.set(`${endpoint}, held`, held?.heldNanoseconds ?? 0);
      run.set(`${endpoint}, memory`, memory?.peakBytes ?? 0);
      run.set(`${endpoint}, body`, Math.max(memory?.bytes ?? 0, LEAST_BYTES));
      for (const [what, one] of [
        ['longest', held],
        ['most memory', memory],
      ] as const) {
        if (one !== undefined) {
          const figures = `${(one.heldNanoseconds / 1e6).toFixed(0)} ms, ${memoryFor(one).toFixed(1)} times its size of ${one.bytes} bytes`;
          process.stderr.write(`  ${what}: ${one.request}: ${figures}\n`);
        }
      }
    }
    return run;
  } finally {
    await service.stop();
  }
}

const heldFor = ({ heldNanoseconds }: Result) => heldNanoseconds;
const memoryFor = ({ peakBytes, bytes }: Result) => peakBytes / Math.max(bytes, LEAST_BYTES);

function isAt(request: string, endpoint: string): boolean {
  return request.startsWith(`${endpoint}:`) || request.startsWith(`${endpoint}?`);
}

function mostExpensive(results: readonly Result[], endpoint: string, count: number): string[] {
  const own = results.filter(({ request }) => isAt(request, endpoint));
  return [heldFor, memoryFor].flatMap((figure) =>
    [...own]
      .sort((one, other) => figure(other) - figure(one))
      .slice(0, count)
      .map(({ request }) => request),
  );
}

function worst(results: readonly Result[], figure: (result: Result) => number): Result | undefined {
  return results.reduce<Result | undefined>(
    (found, one) => (found === undefined || figure(one) > figure(found) ? one : found),
    undefined,
  );
}

/** Resolves when the response is complete, whatever its status. */
function answerOf(url: string, { path, contentType }: ExpensiveRequest, body: Buffer): Promise<void> {
  return new Promise((answered, failed) => {
    const headers = { 'Content-Type': contentType, 'Content-Length': body.length, Connection: 'close' };
    const request = send(url + path, { method: 'POST', headers }, (response) => {
      response.resume();
      response.on('end', answered);
      response.on('error', failed);
    });
    request.on('error', failed);
    request.end(body);
  });
}

export const trial: Trial = {
  name: 'service-worst-case',
  file: import.meta.url,
  once: true,
  measure,
  comparisons: ENDPOINTS.flatMap((endpoint): Comparison[] => [
    {
      name: `${endpoint}, held`,
      measured: `${endpoint}, held`,
      comparedWith: LONGEST,
      of: 'time',
      target: { atMost: 1 },
    },
    {
      name: `${endpoint}, memory`,
      measured: `${endpoint}, memory`,
      comparedWith: `${endpoint}, body`,
      of: 'memory',
      target: { atMost: 16 },
    },
  ]),
  notes: [
    `The most expensive request that is found for each endpoint. Some ${'thousand'} are tried with an eighth of body_limit: every shape (wide, deep, long, of different names, of letters of every kind, as many as are let through) in every place; the ${MOST_EXPENSIVE} most expensive by either figure are sent at full length, ${TIMES} times, and the smallest figure counts: others on the machine can only make it larger.`,
    'Held: for how long the service did nothing else, looked at from inside its process, in time that its thread had a processor where the system says so (Linux): what else runs on the machine does not count. Memory: how much more was resident at once, beside the length of the body, or beside 2 MiB where it is shorter: for objects that are young V8 alone takes up to 32 MiB.',
    'The service has all filters, with a ledger in SQLite, scheduling policies for pods and leases, and an admin policy; its body_limit is as it is unless told otherwise.',
  ],
};
