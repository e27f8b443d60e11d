/** Measures the cost of a check relative to parsing its request. */
import { type CreateRequest, UsageEnforcement } from '../src/index.ts';
import { writeDurationFilters } from './duration-filters.ts';
import { amount } from './harness/amount.ts';
import type { Comparison, Subject, Suite } from './harness/suite.ts';
import { CAPTURED_SECONDS, capturedRequests, capturedTexts, requestsWithAllocations } from './requests.ts';

/** Operations per turn. */
const ROUNDS_OF_REQUESTS = amount(8, 1);
const TOO_SHORT = CAPTURED_SECONDS / 2;

type Values = Readonly<Record<string, unknown>>;

const JUST_ENOUGH: Values = {
  enabled_filters: ['MaxLeaseDurationFilter'],
  max_lease_duration: CAPTURED_SECONDS,
};
const TOO_LITTLE: Values = { ...JUST_ENOUGH, max_lease_duration: TOO_SHORT };

/** Checks all `requests`; fails unless each result is `allowed`. */
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

/** MaxLeaseDurationFilter and nine others that check the length; the last one decides as `allowed` says. */
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

/** Parses all `texts`. */
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

/** What others are compared with. */
export const PARSING_AND_FILTERS: Suite['subjects'] = {
  'JSON.parse': () => parsing(capturedTexts()),
  'JSON.parse, compact': () => parsing(capturedTexts().map((text) => JSON.stringify(JSON.parse(text)))),
  'ten filters, allowed': () => tenFilters(true),
  'ten filters, rejected': () => tenFilters(false),
};

/** What was reached once. A rejection has its message as well. */
const TARGETS = { allowed: { one: 0.35, ten: 0.75 }, rejected: { one: 0.4, ten: 0.85 } } as const;

export const suite: Suite = {
  name: 'check',
  file: import.meta.url,
  rounds: 9,
  turnMilliseconds: 60,
  subjects: {
    ...PARSING_AND_FILTERS,
    'one filter, allowed': () => decisions(JUST_ENOUGH, true),
    'one filter, rejected': () => decisions(TOO_LITTLE, false),
    '1 allocation, allowed': () => decisions(JUST_ENOUGH, true, requestsWithAllocations(1)),
    '10,000 allocations, allowed': () => decisions(JUST_ENOUGH, true, requestsWithAllocations(10_000)),
    '1 allocation, rejected': () => decisions(TOO_LITTLE, false, requestsWithAllocations(1)),
    '10,000 allocations, rejected': () => decisions(TOO_LITTLE, false, requestsWithAllocations(10_000)),
  },
  comparisons: [
    ...(['allowed', 'rejected'] as const).flatMap((answer): Comparison[] => [
      {
        name: `one filter, ${answer}`,
        measured: `one filter, ${answer}`,
        comparedWith: 'JSON.parse',
        of: 'time',
        target: { atMost: TARGETS[answer].one },
      },
      {
        name: `one filter, ${answer}, compact`,
        measured: `one filter, ${answer}`,
        comparedWith: 'JSON.parse, compact',
        of: 'time',
      },
      {
        name: `ten filters, ${answer}`,
        measured: `ten filters, ${answer}`,
        comparedWith: 'JSON.parse',
        of: 'time',
        target: { atMost: TARGETS[answer].ten },
      },
      {
        name: `large lease, ${answer}`,
        measured: `10,000 allocations, ${answer}`,
        comparedWith: `1 allocation, ${answer}`,
        of: 'time',
        target: { atMost: 1.2 },
      },
    ]),
  ],
  notes: [
    'One operation is an awaited UsageEnforcement.checkCreate of the captured check-create-physical-host, already parsed; or one JSON.parse of its text: as captured (indented), and compact, as Blazar sends it.',
    'The request comes on 64 different days, so that no decision can gain from the last one.',
    'The one filter is MaxLeaseDurationFilter; a rejection includes its message, with both durations in words.',
    'The ten filters are MaxLeaseDurationFilter and nine as an operator would write them, in a folder of filters_path: each reads both dates and compares the length with its own limit. Rejected means rejected by the tenth.',
  ],
};
