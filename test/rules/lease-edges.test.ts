/** Rules for leases at the edges of what Blazar sends. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Lease } from '../../src/index.ts';
import {
  judgeWithoutLedger,
  LeaseActivation,
  leaseEnvironment,
  RuleJudge,
  readRules,
} from '../../src/rules/index.ts';
import { temporaryFile } from '../support/files.ts';

const NOW = new Date('2026-11-21T09:00:00Z');
const environments = { create: leaseEnvironment('create'), update: leaseEnvironment('update') };
const host = { resource_type: 'physical:host', min: 1, max: 2 };
const LEASE: Lease = {
  name: 'a',
  start_date: '2026-12-01 09:00',
  end_date: '2026-12-03 09:00',
  before_end_date: '2026-12-03 08:00',
  reservations: [{ ...host, id: 'r' }],
};

/** What is said of a lease, or of its update. `true` and `false` are of the rule, a text is why it breaks. */
function said(allow: string, lease: Lease, currentLease?: Lease, more: object = {}, now = NOW): unknown {
  const rule = {
    name: 'a',
    allow,
    message: 'x',
    on: currentLease === undefined ? 'create' : 'update',
    ...more,
  };
  const read = readRules(temporaryFile('rules.yaml', JSON.stringify({ rules: [rule] })), environments);
  const mistakes = read.problems.filter(({ severity }) => severity === 'error');
  if (mistakes.length > 0) {
    return mistakes.map(({ message }) => message).join();
  }
  const operation = currentLease === undefined ? 'create' : 'update';
  const context = { user_id: 'alice', project_id: 'climate' };
  const parts = { operation, context, lease, currentLease, names: undefined, now } as const;
  const judge = new RuleJudge(read.rules[operation]);
  const { violations, failures } = judge.judge(new LeaseActivation(parts), () => false, now.getTime());
  const [failure] = failures;
  return failure === undefined ? violations.length === 0 : String(failure.cause);
}

it.for<[string, unknown]>([
  ['lease.name == "b" && current.name == "a"', true],
  ['hours(lease) == 48.0 && hours(current) == 48.0 && size(lease, "physical:host") == 2', true],
  ['lease.start_date == current.start_date && size(reservations) == 1', true],
  ['lease.attributes.before_end_date == current.attributes.before_end_date', true],
  ['hours(lease) < 48.0', false],
])('judges an update of the name alone by what the lease is: %s', ([allow, expected]) => {
  expect(said(allow, { name: 'b' }, { ...LEASE, id: 'l' })).toBe(expected);
});

it('reads before_end_date as it was sent, and hours does not depend on it', () => {
  const allow = 'lease.attributes.before_end_date == "2026-12-03 08:30" && hours(lease) == 48.0';
  expect(said(allow, { before_end_date: '2026-12-03 08:30' }, { ...LEASE, id: 'l' })).toBe(true);
  expect(said('has(lease.before_end_date)', LEASE)).toMatch(/before_end_date/);
  const { before_end_date: _, ...without } = LEASE;
  expect(said('lease.attributes.?before_end_date.orValue("") == ""', without)).toBe(true);
});

it.for<[string, unknown]>([
  ['reservations.all(r, 1 > 2)', true],
  ['reservations.exists(r, 1 < 2)', false],
  ['size(lease, "physical:host") == 0 && size(reservations) == 0 && size(allocations) == 0', true],
])('says of a lease without reservations that %s', ([allow, expected]) => {
  expect(said(allow, { ...LEASE, reservations: [] })).toBe(expected);
});

it('adds up reservations of one type, and tells them apart', () => {
  const gpu = { ...host, max: 3, resource_properties: '["==", "$gpu", "True"]' };
  const lease = { ...LEASE, reservations: [host, gpu, { resource_type: 'device', min: 1, max: 9 }] };
  expect(said('size(lease, "physical:host") == 5', lease)).toBe(true);
  expect(said('reservations.filter(r, property(r, "gpu") == "True").size() == 1', lease)).toBe(true);
});

it('leaves it to the ledger whether invalid properties matter, if the rule reads both', () => {
  const rulesOf = (allow: string) => {
    const file = temporaryFile('rules.yaml', JSON.stringify({ rules: [{ name: 'a', allow, message: 'x' }] }));
    return readRules(file, environments).rules.create;
  };
  const lease = { ...LEASE, reservations: [{ ...host, resource_properties: 'no JSON' }] };
  const parts = { operation: 'create', context: { user_id: 'a', project_id: 'b' }, lease, now: NOW } as const;
  const judged = (allow: string) => judgeWithoutLedger(new RuleJudge(rulesOf(allow)), parts, () => false);
  const known = 'property(reservations[0], "gpu") == ""';
  expect(judged(known)).toMatchObject({ violations: [{ rule: { name: 'a' } }], failures: [], open: [] });
  expect(judged(`${known} || leases() < 1`)).toMatchObject({
    violations: [],
    failures: [],
    open: [{ name: 'a' }],
  });
});

it('looks at 10,000 allocations, and refuses at load what would look at each pair of them', () => {
  const allocations = (count: number) => Array.from({ length: count }, (_, id) => ({ id, gpu: 'False' }));
  const halves = [allocations(5000), [...allocations(4999), { id: 1, gpu: 'True' }]];
  const lease = { ...LEASE, reservations: halves.map((some) => ({ ...host, allocations: some })) };
  expect(said('size(allocations) == 10000', lease)).toBe(true);
  expect(said('allocations.all(a, a.gpu == "False")', lease)).toBe(false);
  expect(said('allocations.exists_one(a, a.gpu == "True")', lease)).toBe(true);
  expect(said('allocations.all(a, allocations.exists(b, a.id == b.id))', lease)).toMatch(/may take .* steps/);
});

it('sees the allocations of an update, and those of reservations that it leaves out', () => {
  const reservation = (id: string, gpu: string) => ({ ...host, id, allocations: [{ id: `of-${id}`, gpu }] });
  const current = { ...LEASE, id: 'l', reservations: [reservation('r', 'old'), reservation('s', 'kept')] };
  const update = { reservations: [{ id: 'r', max: 4, allocations: [{ id: 'of-r', gpu: 'new' }] }] };
  expect(said('allocations.map(a, string(a.gpu)) == ["new", "kept"]', update, current)).toBe(true);
  expect(said('current.reservations[0].allocations[0].gpu == "old"', update, current)).toBe(true);
  expect(said('size(lease, "physical:host") == 6', update, current)).toBe(true);
});

it.for([
  ['08:59:59.999Z', false],
  ['09:00:00Z', true],
  ['09:00:00.001Z', true],
] as const)('does not judge at %s by a rule until nine: %s', ([time, allowed]) => {
  const now = new Date(`2026-12-21T${time}`);
  expect(said('1 > 2', LEASE, undefined, { until: '2026-12-21T10:00:00+01:00' }, now)).toBe(allowed);
});

it.for([
  // Clocks go forward on Sunday, 29 March, and back on Sunday, 25 October.
  ['2026-03-28T22:59:59Z', 6, 23],
  ['2026-03-28T23:00:00Z', 0, 0],
  ['2026-03-29T00:59:59Z', 0, 1],
  ['2026-03-29T01:00:00Z', 0, 3],
  ['2026-03-29T21:59:59Z', 0, 23],
  ['2026-03-29T22:00:00Z', 1, 0],
  ['2026-10-24T21:59:59Z', 6, 23],
  ['2026-10-24T22:00:00Z', 0, 0],
  ['2026-10-25T00:59:59Z', 0, 2],
  ['2026-10-25T01:00:00Z', 0, 2],
  ['2026-10-25T22:59:59Z', 0, 23],
  ['2026-10-25T23:00:00Z', 1, 0],
] as const)('knows that %s in Berlin is on day %d at %d', ([time, day, hour]) => {
  const allow = `timestamp("${time}").getDayOfWeek("Europe/Berlin") == ${day} && lease.start_date.getHours("Europe/Berlin") == ${hour}`;
  expect(said(allow, { ...LEASE, start_date: time.slice(0, -1).replace('T', ' ') })).toBe(true);
});

it.for<[string, string, string, string, unknown]>([
  // A day is that of UTC, and the last one counts.
  ['2026-12-19 23:00', '2026-12-20 00:00', '2026-12-20', '2026-12-20', false],
  ['2026-12-19 23:00', '2026-12-20 00:01', '2026-12-20', '2026-12-20', true],
  ['2026-12-20 23:59', '2026-12-21 12:00', '2026-12-20', '2026-12-20', true],
  ['2026-12-21 00:00', '2026-12-21 12:00', '2026-12-20', '2026-12-20', false],
  // Midnight in Berlin is 23:00 UTC.
  ['2026-12-19 22:00', '2026-12-19 23:30', '2026-12-20T00:00:00+01:00', '2026-12-21T00:00:00+01:00', true],
  ['2026-12-19 22:00', '2026-12-19 23:00', '2026-12-20T00:00:00+01:00', '2026-12-21T00:00:00+01:00', false],
  ['2026-12-20 23:00', '2026-12-21 08:00', '2026-12-20T00:00:00+01:00', '2026-12-21T00:00:00+01:00', false],
  // Without a zone, times are in UTC.
  ['2026-12-20 07:00', '2026-12-20 08:00', '2026-12-20T08:00:00', '2026-12-20T09:00:00', false],
  ['2026-12-20 07:00', '2026-12-20 08:01', '2026-12-20 08:00', '2026-12-20 09:00', true],
])(
  'says whether a lease from %s to %s overlaps %s to %s: %s',
  ([start_date, end_date, from, until, expected]) => {
    expect(said(`overlaps(lease, "${from}", "${until}")`, { ...LEASE, start_date, end_date })).toBe(expected);
  },
);

it.for<[string, string, unknown]>([
  ['2026-12-01 10:30', 'hours(lease) == 1.5', true],
  ['2026-12-01 09:20', 'hours(lease) < 0.34 && hours(lease) > 0.33', true],
  ['2026-12-03 09:00', 'hours(lease) <= 48.0', true],
  ['2026-12-03T09:00:00.000001', 'hours(lease) <= 48.0', false],
  ['2026-12-03T09:00:01', 'hours(lease) <= 48.0', false],
])('counts the hours until %s exactly: %s', ([end_date, allow, expected]) => {
  expect(said(allow, { ...LEASE, end_date })).toBe(expected);
});

it('reads files of a folder whatever case their endings have', () => {
  const file = temporaryFile('a.yaml', 'rules: [{name: a, allow: 1 < 2, message: x}]');
  const folder = join(file, '..');
  writeFileSync(join(folder, 'B.YAML'), 'rules: [{name: b, allow: 1 < 2, message: x}]');
  writeFileSync(join(folder, 'c.Yml'), 'rules: [{name: c, allow: 1 < 2, message: x}]');
  const { rules } = readRules(folder, environments);
  expect(rules.create.map(({ name }) => name).sort()).toEqual(['a', 'b', 'c']);
});
