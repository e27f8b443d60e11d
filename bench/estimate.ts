/** What an estimate costs, beside one check of the same lease: alone, and with a filter that asks another service. */
import type { CreateRequest, UsageEnforcement } from '../src/index.ts';
import { setBudget } from '../src/ledger/budgets/budgets.ts';
import { openLedger } from '../src/ledger/open.ts';
import type { Dialect } from '../src/ledger/storage/connection.ts';
import { startExternalService } from './external-service-process.ts';
import { amount } from './harness/amount.ts';
import { QUICK, runOnce } from './harness/run.ts';
import type { Comparison, Run, Scale, Subject, Suite, Trial } from './harness/suite.ts';
import { CLOCK, DIALECTS, NAMES, NO_WAIT, newLedger, startDatabases } from './ledger-databases.ts';
import { enforcementAt, requestsOf } from './ledger-leases.ts';

/** In one batch: enough for a clock to see. */
const LEASES = amount(20, 2);
const POOR = 'poor';
const MOST_CALLS = 3;
const CALLS = 'calls of the service by one estimate';
const BOUND = 'allowed calls';

/** A ledger whose project cannot pay for a lease: its budget lasts for some hours, and grows a year later. */
async function ledgerOf(dialect: Dialect): Promise<string> {
  const connection = await newLedger(dialect);
  const options = { connection, commit: 'check', timeout: 60, pool_size: 1 } as const;
  const { ledger } = openLedger(options, { clock: CLOCK, observer: undefined });
  const first = BigInt(Date.UTC(2026, 0) / 1000);
  const year = 31_536_000n;
  for (const [from, hours] of [
    [first, 20n],
    [first + year, 1_000_000n],
  ] as const) {
    const period = { validFrom: from, validUntil: from + year, amount: hours * 3_600_000_000n };
    await setBudget(
      ledger,
      { projectId: POOR, userId: null, ...period },
      { who: 'bench', reason: null },
      NO_WAIT,
    );
  }
  await ledger.close();
  return connection;
}

async function chainOn(dialect: Dialect, service?: string, called = () => {}): Promise<UsageEnforcement> {
  const connection = await ledgerOf(dialect);
  const filters = ['MaxLeaseDurationFilter', 'MaxLeasesFilter', 'UsageBudgetFilter'];
  const more = {
    enabled_filters: service === undefined ? filters : [...filters, 'ExternalServiceFilter'],
    max_lease_duration: 100 * 86_400,
    ...(service !== undefined && { external_service_base_endpoint: service }),
  };
  return enforcementAt(connection, more, { called, breakerChanged() {} });
}

/** Four hosts for ten days. An estimate does not know which hosts. */
function refusedRequests(prefix: string): () => CreateRequest {
  const next = requestsOf(prefix);
  return () => {
    const { context, lease } = next();
    const reservations = (lease.reservations ?? []).slice(0, 1);
    return {
      context,
      lease: {
        ...lease,
        start_date: '2026-12-01T09:00:00',
        end_date: '2026-12-11T09:00:00',
        reservations: reservations.map((one) => ({ ...one, max: 4, allocations: [] })),
      },
    };
  };
}

type Ask = (enforcement: UsageEnforcement, request: CreateRequest) => Promise<boolean>;

const inPoor = ({ context, lease }: CreateRequest): CreateRequest => ({
  context: { ...context, project_id: POOR },
  lease,
});

const checks: Ask = async (enforcement, request) => {
  const { allowed } = await enforcement.checkCreate(inPoor(request), { dryRun: true, explain: true });
  return !allowed;
};
const commits: Ask = async (enforcement, request) => (await enforcement.checkCreate(request)).allowed;
const estimatesAllowed: Ask = async (enforcement, request) => {
  const { decision, charges } = await enforcement.estimate(request);
  return decision.allowed && charges.length > 0;
};
const estimatesRefused: Ask = async (enforcement, request) => {
  const { decision, suggestions } = await enforcement.estimate(inPoor(request));
  return !decision.allowed && suggestions.length >= 2;
};

async function subjectOf(dialect: Dialect, ask: Ask, withService = false): Promise<Subject> {
  const server = withService ? await startExternalService() : undefined;
  const enforcement = await chainOn(dialect, server?.url);
  const nextRequest = refusedRequests(`${process.pid} `);
  const next = async () => {
    if (!(await ask(enforcement, nextRequest()))) {
      throw new Error('expected another answer');
    }
  };
  await next();
  return {
    operations: LEASES,
    async batch() {
      for (let count = 0; count < LEASES; count += 1) {
        await next();
      }
    },
    async close() {
      await enforcement.close();
      await server?.stop();
    },
  };
}

async function callsOfOneEstimate(): Promise<number> {
  const server = await startExternalService();
  let calls = 0;
  const enforcement = await chainOn('sqlite', server.url, () => {
    calls += 1;
  });
  await estimatesRefused(enforcement, refusedRequests('')());
  await enforcement.close();
  server.stop();
  return calls;
}

const SERVICE = 'another service';
const on = (what: string, place: string) => `${what}, ${place}`;

/** Only for `measure`, which starts the databases. */
export const suite: Suite = {
  name: 'estimate',
  file: import.meta.url,
  rounds: 9,
  turnMilliseconds: 300,
  subjects: {
    ...Object.fromEntries(
      DIALECTS.flatMap((dialect) => [
        [on('check', NAMES[dialect]), () => subjectOf(dialect, checks)],
        [on('check and commit', NAMES[dialect]), () => subjectOf(dialect, commits)],
        [on('allowed', NAMES[dialect]), () => subjectOf(dialect, estimatesAllowed)],
        [on('refused', NAMES[dialect]), () => subjectOf(dialect, estimatesRefused)],
      ]),
    ),
    [on('check', SERVICE)]: () => subjectOf('sqlite', checks, true),
    [on('refused', SERVICE)]: () => subjectOf('sqlite', estimatesRefused, true),
  },
  comparisons: [],
  notes: [],
};

async function measure({ quick }: Scale): Promise<Run> {
  const databases = await startDatabases();
  try {
    const run = await runOnce(suite, quick ? QUICK : suite);
    return new Map([...run, [CALLS, await callsOfOneEstimate()], [BOUND, MOST_CALLS]]);
  } finally {
    await databases.stop();
  }
}

const comparisons: Comparison[] = [
  ...DIALECTS.flatMap((dialect): Comparison[] => {
    const place = NAMES[dialect];
    const ofTime = { of: 'time' } as const;
    return [
      {
        name: on('allowed, beside a check', place),
        ...ofTime,
        measured: on('allowed', place),
        comparedWith: on('check', place),
        target: { atMost: 3 },
      },
      {
        name: on('refused, beside a check and commit', place),
        ...ofTime,
        measured: on('refused', place),
        comparedWith: on('check and commit', place),
        target: { atMost: 3 },
      },
      {
        name: on('refused, beside a check', place),
        ...ofTime,
        measured: on('refused', place),
        comparedWith: on('check', place),
      },
    ];
  }),
  {
    name: on('refused, beside a check', SERVICE),
    measured: on('refused', SERVICE),
    comparedWith: on('check', SERVICE),
    of: 'time',
    target: { atMost: 3 },
  },
  { name: CALLS, measured: CALLS, comparedWith: BOUND, of: 'count', target: { atMost: 1 } },
];

export const trial: Trial = {
  name: 'estimate',
  file: import.meta.url,
  measure,
  comparisons,
  notes: [
    'One operation is UsageEnforcement.estimate, awaited, with MaxLeaseDurationFilter, MaxLeasesFilter and UsageBudgetFilter. The lease is the captured check-create-physical-host with four hosts for ten days. Where it is refused, the budget is too small, the next one begins in the year after, and two leases or more are suggested: each was found among those that were tried, and allowed by every filter.',
    'A check is a dry run of the same lease in which every filter is asked. A check and commit is what Blazar asks for: of a lease that is allowed, in another project.',
    'Another service: ExternalServiceFilter beside them, which calls a service in another process that allows everything; SQLite.',
  ],
};
