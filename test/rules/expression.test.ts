import { describe, expect, it } from 'vitest';
import { compileExpression } from '../../src/rules/expression.ts';
import { leaseEnvironment } from '../../src/rules/lease/environment.ts';
import { LeaseActivation } from '../../src/rules/lease/request-view.ts';
import { rows } from '../support/rows.ts';

const environment = leaseEnvironment('create');
const lease = {
  name: 'n',
  start_date: '2026-12-19 10:00',
  end_date: '2026-12-21 10:00',
  reservations: [
    {
      resource_type: 'physical:host',
      min: 1,
      max: 3,
      resource_properties: '["==", "$gpu", "True"]',
      allocations: [
        { id: '1', gpu: 'x', n: 3 },
        JSON.parse('{"id": "2", "__proto__": {"gpu": "y"}, "constructor": 5}'),
      ],
    },
  ],
  extra: { a: [1, 2.5, 'x'], huge: 1e300, '': 'empty', nothing: null },
};
const activation = new LeaseActivation({
  operation: 'create',
  context: { user_id: 'u', project_id: 'p' },
  lease,
  now: new Date('2026-12-01T00:00:00Z'),
});

/** The value, `no: why` if it has none, or `mistake at 7: what` if it is not accepted. */
function outcome(text: string, type = 'bool'): unknown {
  const compiled = compileExpression(environment, text, type);
  if ('mistake' in compiled) {
    return `mistake at ${compiled.mistake.offset}: ${compiled.mistake.message}`;
  }
  try {
    return compiled.expression.run(activation);
  } catch (thrown) {
    return `no: ${thrown instanceof Error ? thrown.message : thrown}`;
  }
}

describe('an expression', () => {
  it.each([
    ['hours(lease) <= 48', true],
    ['hours(lease) < 48.0', false],
    ['size(lease, "physical:host") == 3', true],
    ['reservations.all(r, property(r, "gpu") != "True")', false],
    ['has(lease.name) && !has(lease.id)', true],
    ['lease.start_date.getDayOfWeek("Europe/Berlin") in [0, 6]', true],
    ['lease.start_date.getHours("Europe/Berlin") == 11 && lease.start_date.getHours("-08:00") == 2', true],
    ['lease.name.matches("^(n|m)$")', true],
    ['allocations.exists(a, a.gpu == "x")', true],
    ['allocations.exists(a, a.?gpu.orValue("") == "y")', false],
    ['lease.attributes.extra.a[1] == 2.5 && lease.attributes.extra.a[0] == 1', true],
    ['lease.attributes.extra.huge > 1e299', true],
    ['overlaps(lease, "2026-12-20", "2027-01-03")', true],
    ['overlaps(lease, "2026-12-01", "2026-12-18")', false],
    ['overlaps(lease, "2026-12-01", "2026-12-19")', true],
    ['overlaps(lease, "2026-12-21T10:00:00Z", "2026-12-22")', false],
    ['overlaps(lease, "2026-12-21T10:59:59+01:00", "2026-12-22")', true],
    ['lease.start_date - now < duration("443h")', true],
    ['duration("1h30m") == duration("90m")', true],
    ['duration("10000s").getHours() == 2 && duration("-3730s").getMinutes() == -62', true],
    ['duration("1m30.5s").getSeconds() == 90 && duration("1m30.5s").getMilliseconds() == 90500', true],
    ['lease.?id.orValue("none") == "none"', true],
    ['lease.attributes.?nope.?x.hasValue()', false],
    ['[1, 2, 3].map(x, [4, 5].map(y, x * y)) == [[4, 5], [8, 10], [12, 15]]', true],
    ['[1, 2, 3].filter(x, [1, 2, 3].filter(y, y < x).size() == 1) == [2]', true],
    ['cel.bind(a, lease.name + lease.name, a + a) == "nnnn"', true],
    ['lease.name in ["a", "n"]', true],
    [
      '"\u{1f600}a".size() == 2 && "\u{1f600}a".indexOf("a") == 1 && "\u{1f600}ab".substring(1, 2) == "a"',
      true,
    ],
    ['"\ud83d\ude00" > "\uffee"', true],
    ['allocations.size() == 2 && size(allocations) == 2', true],
    ['dyn(1) == 1.0 && dyn("a") != dyn(1)', true],
    ['[1, 2].exists_one(x, x == 2)', true],
    ['{"a": 1}["a"] == 1 && "a" in {"a": 1}', true],
    ['lease.attributes.extra[""] == "empty"', true],
    ['lease.attributes.extra.nothing == null && has(lease.attributes.extra.nothing)', true],
    ['lease.attributes.extra.?nothing.hasValue()', true],
    ['"\u0085 a \ufeff".trim() == "a \ufeff"', true],
    ['[7, 8][dyn(1.0)] == 8', true],
    ['0.0 / 0.0 == 0.0 / 0.0 || 0.0 / 0.0 < 1.0 || 0.0 / 0.0 >= 1.0', false],
  ])('%s is %s', (text, value) => {
    expect(outcome(text)).toBe(value);
  });

  it('makes texts for messages', () => {
    expect(
      outcome(
        '"Lease " + lease.name + " of " + string(hours(lease)) + " h, " + string(size(lease, "physical:host"))',
        'string',
      ),
    ).toBe('Lease n of 48 h, 3');
    expect(
      outcome('string(lease.start_date) + " " + string(lease.end_date - lease.start_date)', 'string'),
    ).toBe('2026-12-19T10:00:00Z 172800s');
  });

  it.each(
    rows`
      lease.id == "x" → lease.id is missing
      allocations[0].toString == "a" → allocations[0].toString is missing
      allocations[0].__proto__ == "a" → allocations[0].__proto__ is missing
      allocations[1].gpu == "y" → allocations[1].gpu is missing
      allocations[-1].id == "2" → the list has 2 elements, and no element -1
      allocations[int(hours(lease))].id == "2" → the list has 2 elements, and no element 48
      allocations.exists(a, a.gpu == "z") → a.gpu is missing
      allocations.all(a, a.gpu == "x") → a.gpu is missing
      allocations.filter(a, a.gpu == "x").size() == 1 → a.gpu is missing
      lease.end_date + duration("80000000h") > now → the time is not within the years 1 to 9999
      -int(-9223372036854775808 + size(lease, "none")) > 0 → the number does not fit into 64 bits
      9223372036854775807 + size(lease, "physical:host") > 0 → the number does not fit into 64 bits
      9223372036854775807 * size(lease, "physical:host") > 0 → the number does not fit into 64 bits
      int(1e19 * hours(lease)) > 0 → the number does not fit into 64 bits
      1 / size(lease, "none") == 0 → a division by zero
      lease.start_date - timestamp("0001-01-01T00:00:00Z") > duration("0s") → the times are more than 292 years apart
      1 % size(lease, "none") == 0 → a division by zero
      leases() < 4 → leases() needs a ledger
      lease.attributes.extra.a + 1 == 2 → list + int cannot be computed
      lease.attributes.extra.a[0] + 1.0 == 2.0 → int + double cannot be computed
      lease.attributes.extra.a < 2 → list < int cannot be computed
      lease.attributes.extra || false → expected true or false, got map
      lease.attributes.extra ? true : false → expected true or false, got map
      lease.attributes.name.exists(x, true) → expected a list or a map, got string
      int(lease.name) == 1 → int() got a text that is no whole number
      context.project.tags.exists(t, t == "student") → context.project.tags is missing
    `,
  )('%s has no value: %s', (text, why) => {
    expect(outcome(text)).toBe(`no: ${why}`);
  });

  it.each<string[]>([
    ...rows`
      lease.strat_date < now → 6 → Lease has no attribute "strat_date"; the nearest right name is "start_date"
      has(lease.strat_date) → 10 → Lease has no attribute "strat_date"; the nearest right name is "start_date"
      has(lease.strat_date.x) → 10 → Lease has no attribute "strat_date"; the nearest right name is "start_date"
      lease.constructor == 1 → 6 → Lease has no attribute "constructor"
      nowe > lease.start_date → 0 → nothing is called "nowe"; the nearest right name is "now"
      current.end_date > now → 0 → nothing is called "current"; only updates have it: write on: update
      houres(lease) > 1.0 → 0 → there is no function "houres"; the nearest right name is "hours"
      lease.name.startWith("a") → 0 → there is no function "startWith"; the nearest right name is "startsWith"
      lease.hours() > 1.0 → 0 → write hours(x), not x.hours()
      hours(context) > 1.0 → 0 → hours() does not suit Context; expected hours(Lease): double
      hours(lease) + 1 > 2.0 → 0 → double + int cannot be computed; write 2.0 instead of 2, or double(x)
      lease.name == 5 → 0 → string == int cannot be computed
      "x" in lease.name → 0 → expected a list behind "in", got string; for a part of a text write text.contains(part)
      lease → 0 → expected an expression that is true or false, got Lease
      lease.attributes.x → 0 → expected an expression that is true or false, got dyn; compare it, as in x == true
      1 = 2 → 2 → compare with "==", not with "="
      (1 == 2 → 7 → expected ")", got the end
      lease.start_date.getDayOfWeek("No/Zone") == 1 → 30 → there is no time zone "No/Zone"; expected one such as Europe/Berlin or +01:00
      lease.start_date.getHours("+99:99") == 1 → 26 → there is no time zone "+99:99"; expected one such as Europe/Berlin or +01:00
      lease.start_date.getHours("+01:60") == 1 → 26 → there is no time zone "+01:60"; expected one such as Europe/Berlin or +01:00
      lease.start_date.getHours("-15:00") == 1 → 26 → there is no time zone "-15:00"; expected one such as Europe/Berlin or +01:00
      lease.start_date.getDayOfWeek(lease.name) == 1 → 30 → getDayOfWeek() needs a constant here: it is checked when the rules are loaded
      lease.name.matches(lease.name) → 19 → matches() needs a constant here: it is checked when the rules are loaded
      now + duration("999999999h") > now → 6 → the duration is longer than 10,000 years
      timestamp("2026-13-01T00:00:00Z") > now → 0 → timestamp() needs a time such as 2027-01-31T08:00:00Z or 2027-01-31T08:00:00+01:00
      duration("2 days") > lease.end_date - now → 0 → duration() needs a text such as 36h, 1h30m or 90s
      overlaps(lease, "tomorrow", "2027-01-03") → 16 → expected a date such as 2026-12-20, or a time such as 2026-12-20T08:00:00+01:00
      -(-9223372036854775807 - 1) > 0 → 0 → the number does not fit into 64 bits
      5u > 1u → 0 → bytes and unsigned numbers are not available here
      type(lease) == string → 0 → type() is not available here
      b"abc" == b"abc" → 0 → bytes and unsigned numbers are not available here
      [1, 2].exists(x, x) → 17 → expected true or false as the condition, got int
      [].all(e, e > 0) → 0 → the elements of [] have no type to compute with
      [1].all(f, [[]].all(e, e.all(f, f > 1))) → 12 → the elements of [] have no type to compute with
      1 == 1 && {}.a > 1 → 10 → the elements of {} have no type to compute with
      [].all(e, e ? true : false) → 0 → the elements of [] have no type to compute with
      [].map(e, -e) == [] → 0 → the elements of [] have no type to compute with
      lease == lease → 0 → Lease == Lease cannot be computed
    `,
    ['lease.name.matches("^n(")', '19', 'error parsing regexp: missing closing ): `^n(`'],
    ['lease.name.matches("(a)\\\\1")', '19', 'error parsing regexp: invalid escape sequence: `\\1`'],
    ['lease.name.matches("(a{1000}){1000}")', '19', 'error parsing regexp: invalid repeat count: `{1000}`'],
  ])('%s is refused at %s: %s', (text, offset, message) => {
    expect(outcome(text)).toBe(`mistake at ${offset}: ${message}`);
  });

  it.each([
    'allocations.all(a, allocations.all(b, a.id == b.id))',
    'reservations.all(r, r.allocations.all(a, r.allocations.all(b, a.id != b.id)))',
    'allocations.map(a, allocations) == allocations.map(a, allocations)',
    'reservations.all(r, allocations.exists(a, a.id == r.id))',
    `${Array.from({ length: 24 }, (_, index) => `cel.bind(v${index + 1}, v${index} + v${index}, `)
      .join('')
      .replace('v0 + v0', 'lease.name + lease.name')}v24 == ""${')'.repeat(24)}`,
  ])('%s would cost too much', (text) => {
    expect(outcome(text)).toMatch(/mistake at \d+: may take (?:[\d,]+|countless) steps for one request/);
  });

  it.each([
    [`${'!'.repeat(9990)}true`],
    [`${'('.repeat(4000)}true${')'.repeat(4000)}`],
    [Array.from({ length: 1600 }, () => 'true').join(' && ')],
    [`${'['.repeat(4000)}1${']'.repeat(4000)} == []`],
    [`lease.name${'.a'.repeat(4000)} == 1`],
    ['x'.repeat(10_001)],
  ])('that is too large is a mistake', (text) => {
    expect(outcome(text)).toMatch(/too large|too deeply|at most 10000 characters/);
  });

  it('may go through the allocations of each reservation once', () => {
    expect(outcome('reservations.all(r, r.allocations.all(a, a.id != ""))')).toBe(true);
  });
});
