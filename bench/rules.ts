/** Measures rules, relative to parsing their request, to filters, and to the same rules in other engines. */
import { type CreateRequest, UsageEnforcement } from '../src/index.ts';
import { PARSING_AND_FILTERS } from './check.ts';
import { amount } from './harness/amount.ts';
import type { Subject, Suite } from './harness/suite.ts';
import { capturedRequests, withLease } from './requests.ts';
import { type DecideByRules, RULE_PEERS } from './rule-peers.ts';
import { fiftyRules, TEN_RULES, writeRules } from './rule-texts.ts';

const ROUNDS_OF_REQUESTS = amount(4, 1);
/** Violates the last of the ten rules. */
const TEST_LEASE: CreateRequest['lease'] = { name: 'test-7' };

async function enforcementBy(rules: readonly string[]): Promise<UsageEnforcement> {
  const { path, remove } = writeRules(rules);
  try {
    return await UsageEnforcement.load({
      environment: {},
      values: { enforcement: { enabled_filters: ['RulesFilter'], rules_path: path } },
    });
  } finally {
    remove();
  }
}

async function ours(rules: readonly string[]): Promise<DecideByRules> {
  const enforcement = await enforcementBy(rules);
  return async (request) => {
    const { allowed, failed } = await enforcement.checkCreate(request);
    if (failed) {
      throw new Error('a rule failed');
    }
    return allowed;
  };
}

/** Decides all requests; each result must be `allowed`. */
async function decisions(
  decide: DecideByRules,
  allowed: boolean,
  rejected: CreateRequest['lease'] = TEST_LEASE,
): Promise<Subject> {
  const requests = capturedRequests().map((one) => (allowed ? one : withLease(one, rejected)));
  for (const request of requests) {
    if ((await decide(request)) !== allowed) {
      throw new Error(`expected allowed = ${allowed} for ${JSON.stringify(request.lease)}`);
    }
  }
  return {
    operations: ROUNDS_OF_REQUESTS * requests.length,
    async batch() {
      for (let round = 0; round < ROUNDS_OF_REQUESTS; round += 1) {
        for (const request of requests) {
          const answer = decide(request);
          if (typeof answer !== 'boolean') {
            await answer;
          }
        }
      }
    },
  };
}

/** Verifies that an engine has all ten rules: each is violated once, and once barely fulfilled. */
async function proveRules(name: string, decide: DecideByRules): Promise<void> {
  const [captured] = capturedRequests();
  if (captured === undefined) {
    throw new Error('there is no request');
  }
  const { context, lease } = captured;
  const [reservation] = lease.reservations ?? [];
  const otherProject = { project_id: '9a1c5b1f5d7a4c0c8a6f0d6b7f3e2d10' };
  const hosts = (max: number, end_date = lease.end_date) => ({
    end_date,
    reservations: [{ ...reservation, max }],
  });
  const during = (start_date: string, end_date: string) => ({ lease: { start_date, end_date } });
  const cases: readonly (Readonly<{ context?: object; lease?: object }> & { readonly allowed: boolean })[] = [
    { allowed: true },
    { lease: { end_date: '2026-12-03T09:00:01' }, allowed: false },
    { lease: hosts(4, '2026-12-02T09:00:00'), allowed: true },
    { lease: hosts(5, '2026-12-01T10:00:00'), allowed: false },
    { lease: hosts(3), allowed: false },
    { lease: { reservations: [{ ...reservation, resource_type: 'virtual:floatingip' }] }, allowed: false },
    { ...during('2027-07-19T00:00:00', '2027-07-20T00:00:00'), allowed: true },
    { ...during('2027-07-19T00:00:00', '2027-07-20T00:00:01'), allowed: false },
    { ...during('2027-07-23T23:59:59', '2027-07-25T00:00:00'), allowed: false },
    { ...during('2027-07-24T00:00:00', '2027-07-25T00:00:00'), allowed: true },
    { ...during('2027-12-30T23:59:59', '2027-12-31T12:00:00'), allowed: true },
    { ...during('2027-12-31T00:00:00', '2027-12-31T12:00:00'), allowed: false },
    { context: { region_name: 'RegionThree' }, allowed: true },
    { context: { region_name: 'RegionFour' }, allowed: false },
    { context: { user_id: '3d9b1f0c6a774f3fb1d5b0a1c2e4f697' }, allowed: false },
    { context: otherProject, allowed: false },
    { context: otherProject, lease: { end_date: '2026-12-02T09:00:00' }, allowed: true },
    { lease: { name: 'test-1' }, allowed: false },
    { lease: { name: 'a test-1' }, allowed: true },
  ];
  for (const { allowed, ...changed } of cases) {
    const request: CreateRequest = {
      context: { ...context, ...changed.context },
      lease: { ...lease, ...changed.lease },
    };
    if ((await decide(request)) !== allowed) {
      throw new Error(`${name}: expected allowed = ${allowed} for ${JSON.stringify(changed)}`);
    }
  }
}

const ENGINES: Readonly<Record<string, () => Promise<DecideByRules>>> = {
  'ten rules': () => ours(TEN_RULES),
  ...RULE_PEERS,
};

async function proved(name: string, allowed: boolean): Promise<Subject> {
  const decide = await ENGINES[name]?.();
  if (decide === undefined) {
    throw new Error(`there is no engine ${name}`);
  }
  await proveRules(name, decide);
  return decisions(decide, allowed);
}

/** Like the ten filters: the last one decides. */
function rulesOfLength(): string[] {
  return Array.from({ length: 10 }, (_, index) => `hours(lease) <= ${index < 9 ? 99_999 : 48}.0`);
}

/** Each has its own limit, and is evaluated. */
function allowingRules(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `hours(lease) <= ${48 + index}.0`);
}

/** The number of rules, and the number to compare with. */
const FEW_RULES = 10;
const MORE_RULES = [100, 1000];
const manyRules = (rules: number) => `${rules.toLocaleString('en')} rules of length`;

const ANSWERS = ['allowed', 'rejected'] as const;

/** Ratios reached before, for the calls in the documentation of cedar and casbin. */
const TARGETS: Readonly<Record<string, Readonly<Record<(typeof ANSWERS)[number], number>>>> = {
  'cedar-wasm': { allowed: 25, rejected: 12 },
  'casbin, enforce': { allowed: 8, rejected: 3.9 },
};

export const suite: Suite = {
  name: 'rules',
  file: import.meta.url,
  rounds: 9,
  turnMilliseconds: 60,
  subjects: {
    ...PARSING_AND_FILTERS,
    'fifty rules': async () => decisions(await ours(fiftyRules()), true),
    ...Object.fromEntries(
      [FEW_RULES, ...MORE_RULES].map((rules) => [
        manyRules(rules),
        async () => decisions(await ours(allowingRules(rules)), true),
      ]),
    ),
    'ten rules of length, rejected': async () =>
      decisions(await ours(rulesOfLength()), false, { end_date: '2027-12-31T00:00:00' }),
    ...Object.fromEntries(
      Object.keys(ENGINES).flatMap((engine) =>
        ANSWERS.map((answer) => [`${engine}, ${answer}`, () => proved(engine, answer === 'allowed')]),
      ),
    ),
  },
  comparisons: [
    {
      name: 'fifty rules',
      measured: 'fifty rules',
      comparedWith: 'JSON.parse',
      of: 'time',
      target: { atMost: 2 },
    },
    {
      name: 'fifty rules, compact',
      measured: 'fifty rules',
      comparedWith: 'JSON.parse, compact',
      of: 'time',
    },
    {
      name: 'ten rules, allowed',
      measured: 'ten rules, allowed',
      comparedWith: 'ten filters, allowed',
      of: 'time',
      target: { atMost: 0.95 },
    },
    {
      name: 'ten rules, rejected by the last',
      measured: 'ten rules of length, rejected',
      comparedWith: 'ten filters, rejected',
      of: 'time',
      target: { atMost: 1.15 },
    },
    ...MORE_RULES.map((rules) => ({
      name: `${rules.toLocaleString('en')} rules beside ${FEW_RULES}`,
      measured: manyRules(rules),
      comparedWith: manyRules(FEW_RULES),
      of: 'time' as const,
      growth: { picture: 'rules', line: 'rules of length', from: FEW_RULES, size: rules },
    })),
    ...Object.keys(RULE_PEERS).flatMap((engine) =>
      ANSWERS.map((answer) => ({
        name: `${engine}, ${answer}`,
        measured: `ten rules, ${answer}`,
        comparedWith: `${engine}, ${answer}`,
        of: 'rate' as const,
        ...(TARGETS[engine] && { target: { atLeast: TARGETS[engine][answer] } }),
      })),
    ),
  ],
  notes: [
    'One operation is an awaited UsageEnforcement.checkCreate with RulesFilter of the captured check-create-physical-host, already parsed, on 64 different days; or one JSON.parse of its text: as captured (indented), and compact, as Blazar sends it.',
    'The fifty rules are ten kinds with five values each: length, number of hosts, a property, the allocations, a weekday of a time zone, maintenance, a duration, the region, a project, the name. All are asked. So are 10, 100 and 1,000 rules of length, each with a limit of its own.',
    'The ten filters are those of the topic check: each reads both dates and compares the length.',
    'The same ten rules in other engines: each is verified with 19 requests, in which every rule is violated and just not violated, before it is timed. Rejected means rejected by the tenth rule.',
    'cedar-wasm: one forbid for each rule, policies parsed beforehand; dates, hosts and resource types are converted outside. casbin: all rules in one matcher, with functions for dates, hosts and resource types; it cannot say which was violated. cel-js: its own evaluate of the parsed rules, with Dates converted outside.',
    'The other engines return a boolean. Ours validates the request, and returns the reason, the time of the filter and the lease.',
  ],
};
