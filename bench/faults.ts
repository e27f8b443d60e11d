/** Measures how long a failing external service delays a lease, and verifies that the lease is rejected. */
import { type Decision, UsageEnforcement } from '../src/index.ts';
import { FAULTS, type FaultyService } from './faulty-services.ts';
import type { Scale, Trial } from './harness/suite.ts';
import { capturedRequests } from './requests.ts';

const TIMEOUT_SECONDS = 1;
const CHECKS = 3;
const CHECKS_OF_OPEN_BREAKER = 60;

const TIMEOUT = 'external_service_timeout';
const OPEN = 'breaker open';
const OPEN_BOUND = 'allowed';
const OPEN_BOUND_NANOSECONDS = 10e6;
const REFUSED = 'leases refused';
const CHECKED = 'leases checked';

const NO_BREAKER = { external_service_breaker_failures: 0 };
const BREAKER = { external_service_breaker_failures: 1, external_service_breaker_cooldown: 3600 };

const requests = capturedRequests();

/** Nanoseconds of each check by a filter that calls this service. */
async function checks(
  { url, options }: FaultyService,
  breaker: Readonly<Record<string, number>>,
  count: number,
): Promise<{ times: number[]; refused: number }> {
  const enforcement = await UsageEnforcement.load(
    {
      environment: {},
      values: {
        enforcement: {
          enabled_filters: ['ExternalServiceFilter'],
          external_service_base_endpoint: url,
          external_service_timeout: TIMEOUT_SECONDS,
          ...breaker,
          ...options,
        },
      },
    },
    // Failed calls are expected.
    { logger: { debug() {}, info() {}, warn() {}, error() {} } },
  );
  const times: number[] = [];
  const decisions: Decision[] = [];
  for (const request of requests.slice(0, count)) {
    const started = performance.now();
    decisions.push(await enforcement.checkCreate(request));
    times.push((performance.now() - started) * 1e6);
  }
  await enforcement.close();
  return { times, refused: decisions.filter(({ allowed }) => !allowed).length };
}

async function measure({ quick }: Scale): Promise<Map<string, number>> {
  const run = new Map([
    [TIMEOUT, TIMEOUT_SECONDS * 1e9],
    [OPEN_BOUND, OPEN_BOUND_NANOSECONDS],
  ]);
  let refused = 0;
  let checked = 0;
  const note = (name: string, measured: Awaited<ReturnType<typeof checks>>, times = measured.times) => {
    run.set(name, Math.max(...times));
    refused += measured.refused;
    checked += measured.times.length;
  };
  // In parallel, because most of them only wait.
  await Promise.all(
    Object.entries(FAULTS).map(async ([fault, start]) => {
      const service = await start();
      try {
        note(fault, await checks(service, NO_BREAKER, quick ? 1 : CHECKS));
      } finally {
        await service.stop();
      }
    }),
  );
  const service = await FAULTS.silent?.();
  if (service !== undefined) {
    const measured = await checks(service, BREAKER, 1 + CHECKS_OF_OPEN_BREAKER);
    // The first failure opens the circuit breaker.
    note(OPEN, measured, measured.times.slice(1));
    await service.stop();
  }
  return run.set(REFUSED, refused).set(CHECKED, checked);
}

export const trial: Trial = {
  name: 'faults',
  file: import.meta.url,
  measure,
  comparisons: [
    ...Object.keys(FAULTS).map((fault) => ({
      name: fault,
      measured: fault,
      comparedWith: TIMEOUT,
      of: 'time' as const,
      target: { atMost: 1.1 },
    })),
    { name: OPEN, measured: OPEN, comparedWith: OPEN_BOUND, of: 'time', target: { atMost: 1 } },
    { name: REFUSED, measured: REFUSED, comparedWith: CHECKED, of: 'count', target: { atLeast: 1 } },
  ],
  notes: [
    `Sequential checks through ExternalServiceFilter of a service that fails as the row says, with external_service_timeout = ${TIMEOUT_SECONDS} and no breaker: the longest of ${CHECKS}. With the breaker open: the longest of ${CHECKS_OF_OPEN_BREAKER}.`,
    'This includes the first check of the process, which loads the HTTP client. "leases refused" is the number of rejections, which must equal that of checks.',
  ],
};
