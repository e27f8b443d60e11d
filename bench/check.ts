/** What a check itself costs, beside the reading of the request that it is about. */
import { type CreateRequest, UsageEnforcement } from '../src/index.ts';
import { writeDurationFilters } from './duration-filters.ts';
import type { Subject, Suite } from './harness/suite.ts';
import { CAPTURED_SECONDS, capturedRequests, capturedTexts, requestsWithAllocations } from './requests.ts';

/** Of all that is decided here, in every turn. */
const ROUNDS_OF_REQUESTS = 8;
const TOO_SHORT = CAPTURED_SECONDS / 2;

type Values = Readonly<Record<string, unknown>>;

const JUST_ENOUGH: Values = {
  enabled_filters: ['MaxLeaseDurationFilter'],
  max_lease_duration: CAPTURED_SECONDS,
};
const TOO_LITTLE: Values = { ...JUST_ENOUGH, max_lease_duration: TOO_SHORT };

/** Decisions on all of `requests`, which are to end as `allowed` says. */
async function decisions(
  values: Values,
  allowed: boolean,
  requests: readonly CreateRequest[] = capturedRequests(),
): Promise<Subject> {
  const enforcement = await UsageEnforcement.load({ environment: {}, values: { enforcement: values } });
  for (const request of requests) {
    const decision = await enforcement.checkCreate(request);
    if (decision.allowed !== allowed || decision.failed) {
      throw new Error(`expected allowed = ${allowed}, got ${JSON.stringify(decision)}`);
    }
  }
  return {
    operations: ROUNDS_OF_REQUESTS * requests.length,
    async batch() {
      for (let round = 0; round < ROUNDS_OF_REQUESTS; round += 1) {
        for (const request of requests) {
          await enforcement.checkCreate(request);
        }
      }
    },
    close: () => enforcement.close(),
  };
}

/** MaxLeaseDurationFilter and nine more that look at the length; the last one says `allowed`. */
async function tenFilters(allowed: boolean): Promise<Subject> {
  const { folder, names, limits, remove } = writeDurationFilters(9);
  try {
    return await decisions(
      {
        ...JUST_ENOUGH,
        filters_path: [folder],
        enabled_filters: ['MaxLeaseDurationFilter', ...names],
        ...Object.fromEntries(limits.map((limit) => [limit, CAPTURED_SECONDS])),
        ...(allowed ? {} : { [limits.at(-1) ?? '']: TOO_SHORT }),
      },
      allowed,
    );
  } finally {
    remove();
  }
}

function parsing(texts: readonly string[]): Subject {
  return {
    operations: ROUNDS_OF_REQUESTS * texts.length,
    batch() {
      let objects = 0;
      for (let round = 0; round < ROUNDS_OF_REQUESTS; round += 1) {
        for (const text of texts) {
          objects += typeof JSON.parse(text) === 'object' ? 1 : 0;
        }
      }
      return objects;
    },
  };
}

export const suite: Suite = {
  name: 'check',
  file: import.meta.url,
  rounds: 9,
  turnMilliseconds: 60,
  subjects: {
    'JSON.parse': () => parsing(capturedTexts()),
    'JSON.parse, compact': () => parsing(capturedTexts().map((text) => JSON.stringify(JSON.parse(text)))),
    'one filter, allowed': () => decisions(JUST_ENOUGH, true),
    'one filter, rejected': () => decisions(TOO_LITTLE, false),
    'ten filters, allowed': () => tenFilters(true),
    'ten filters, rejected': () => tenFilters(false),
    '1 allocation, allowed': () => decisions(JUST_ENOUGH, true, requestsWithAllocations(1)),
    '10,000 allocations, allowed': () => decisions(JUST_ENOUGH, true, requestsWithAllocations(10_000)),
    '1 allocation, rejected': () => decisions(TOO_LITTLE, false, requestsWithAllocations(1)),
    '10,000 allocations, rejected': () => decisions(TOO_LITTLE, false, requestsWithAllocations(10_000)),
  },
  comparisons: [
    ...(['allowed', 'rejected'] as const).flatMap((answer) => [
      {
        name: `one filter, ${answer}`,
        measured: `one filter, ${answer}`,
        comparedWith: 'JSON.parse',
        of: 'time' as const,
        target: { atMost: 1 },
      },
      {
        name: `one filter, ${answer}, compact`,
        measured: `one filter, ${answer}`,
        comparedWith: 'JSON.parse, compact',
        of: 'time' as const,
      },
      {
        name: `ten filters, ${answer}`,
        measured: `ten filters, ${answer}`,
        comparedWith: 'JSON.parse',
        of: 'time' as const,
        target: { atMost: 3 },
      },
      {
        name: `large lease, ${answer}`,
        measured: `10,000 allocations, ${answer}`,
        comparedWith: `1 allocation, ${answer}`,
        of: 'time' as const,
        target: { atMost: 1.5 },
      },
    ]),
  ],
  notes: [
    'One operation is UsageEnforcement.checkCreate, awaited, on the captured check-create-physical-host, already parsed; or one JSON.parse of its text: as captured (indented), and compact, as Blazar sends it.',
    'The request comes on 64 different days, so that nothing can be remembered from one decision to the next.',
    'The one filter is MaxLeaseDurationFilter; a rejection includes its message, with both durations in words.',
    'The ten are MaxLeaseDurationFilter and nine as an operator writes them, from a folder of filters_path: each reads both dates and compares their distance with a limit of its own. Rejected means: by the tenth.',
  ],
};
