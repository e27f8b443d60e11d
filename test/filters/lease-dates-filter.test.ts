import { describe, expect, it } from 'vitest';
import type { Lease } from '../../src/index.ts';
import { createPhysicalHost, updatePending } from '../support/requests.ts';
import { testFilter } from './contract.ts';
import { loadFilter, mistakes, NOW } from './loaded.ts';

const NAME = 'LeaseDatesFilter';
const DAY = 86_400;
const early = (date: string) => `lease_dates_earliest_start = ${date}`;
const late = (date: string) => `lease_dates_latest_end = ${date}`;
const START = early('2026-12-01T09:00:00');
const END = late('2026-12-03T09:00:00');

/** `null` = it is allowed. */
type Message = string | RegExp | null;
const TOO_EARLY = /^The lease starts at \S+; no lease may start before /;
const TOO_LATE = /^The lease ends at \S+; no lease may end after /;

testFilter({
  name: NAME,
  options: () => ({
    lease_dates_earliest_start: '2026-12-01T09:00:00',
    lease_dates_latest_end: '2027-01-02T00:00:00',
  }),
});

/** Of a new lease that starts now and ends in the last year, unless it has other dates. */
async function expectAtCreate(lines: readonly string[], dates: object, expected: Message, now = NOW) {
  const enforcement = await loadFilter(NAME, lines, { now: () => now });
  const { context, lease } = createPhysicalHost();
  const wanted = { ...lease, start_date: '2026-11-21T09:00', end_date: '9999-12-31', ...dates };
  expectMessage(await enforcement.checkCreate({ context, lease: wanted }), expected);
}

function expectMessage(
  { failed, filter, message }: Awaited<ReturnType<Chain['checkCreate']>>,
  expected: Message,
) {
  expect({ failed, filter }).toEqual({ failed: false, filter: expected === null ? null : NAME });
  expect(message).toEqual(expected === null ? null : expect.stringMatching(expected));
}
type Chain = Awaited<ReturnType<typeof loadFilter>>;

const exactly = (text: string) => new RegExp(`^${text.replaceAll(/[.+()]/g, '\\$&')}$`);

describe('LeaseDatesFilter at create', () => {
  it.each<[readonly string[], Lease, Message]>([
    [[], { start_date: '1970-01-01', end_date: '1970-01-02' }, null],
    [[], { start_date: '2026-12-01' }, null],
    [[START], { start_date: '2026-12-01T09:00:00.000000' }, null],
    [
      [START],
      { start_date: '2026-12-01T08:59:59.999999' },
      exactly(
        'The lease starts at 2026-12-01T08:59:59.999999Z; no lease may start before 2026-12-01T09:00:00Z.',
      ),
    ],
    [[END], { end_date: '2026-12-03T09:00:00.000000' }, null],
    [
      [END],
      { end_date: '2026-12-03T09:00:00.000001' },
      exactly('The lease ends at 2026-12-03T09:00:00.000001Z; no lease may end after 2026-12-03T09:00:00Z.'),
    ],
    [[START], { start_date: '1969-12-31T23:59:59.25' }, 'The lease starts at 1969-12-31T23:59:59.25Z;'],
    [
      [START, END],
      { start_date: '2026-11-30', end_date: '2026-12-31' },
      'The lease starts at 2026-11-30T00:00:00Z',
    ],
    // Only the start has an earliest date, and only the end a latest one.
    [[START], { start_date: '2099-01-01' }, null],
    [[END], { start_date: '2001-01-01', end_date: '2001-01-02' }, null],
    // A date without a time is the start of that day.
    [[late('2026-12-03')], { end_date: '2026-12-03T00:00:00' }, null],
    [[late('2026-12-03')], { end_date: '2026-12-03T00:01:00' }, TOO_LATE],
    // The latest end counts from now, to the millisecond of the clock.
    [[late(`+${DAY}`)], { end_date: '2026-11-22T09:00:30.500000' }, null],
    [[late(`+${DAY}`)], { end_date: '2026-11-22T09:00:30.500001' }, TOO_LATE],
    [
      [late('+0060')],
      { end_date: '2026-11-21T09:02' },
      exactly(
        'The lease ends at 2026-11-21T09:02:00Z; no lease may end after 2026-11-21T09:01:30.5Z (+0060 seconds from now).',
      ),
    ],
    // The earliest start counts from the beginning of the minute.
    [[early('+3600')], { start_date: '2026-11-21T10:00:00' }, null],
    [
      [early('+3600')],
      { start_date: '2026-11-21T09:59:59.999999' },
      exactly(
        'The lease starts at 2026-11-21T09:59:59.999999Z; no lease may start before 2026-11-21T10:00:00Z (+3600 seconds from now).',
      ),
    ],
    [[early('+999999999999')], { start_date: '9999-12-30' }, TOO_EARLY],
    [[late('+999999999999')], {}, null],
  ])('with %j, %j', expectAtCreate);

  it.each([
    '2026-12-01T09:00:00',
    '2026-12-01 09:00',
    '2026-12-01T10:00:00+01:00',
    '20261201T090000Z',
    '2026-12-01T02:00:00.000-07:00',
    '2026-W49-2T09:00',
  ])('reads %s in the configuration as the same instant', async (text) => {
    await expectAtCreate([early(text)], { start_date: '2026-12-01T09:00:00Z' }, null);
    await expectAtCreate([early(text)], { start_date: '2026-12-01T08:59:59.999999Z' }, TOO_EARLY);
  });

  it.each(['2026-11-21T09:00:00.000Z', '2026-11-21T09:00:59.999Z'])(
    'counts the earliest start from the beginning of the minute at %s, as Blazar cuts "now" to the minute',
    async (now) => {
      await expectAtCreate([early('+0')], { start_date: '2026-11-21 09:00' }, null, now);
      await expectAtCreate([early('+0')], { start_date: '2026-11-21T08:59:59.999999' }, TOO_EARLY, now);
    },
  );

  it('moves with the clock, without a reload', async () => {
    let now = '2026-11-21T09:00:00Z';
    const enforcement = await loadFilter(NAME, [late(`+${DAY}`), early('+60')], { now: () => now });
    const { context, lease } = createPhysicalHost();
    const ask = async (start_date: string, end_date: string) =>
      (await enforcement.checkCreate({ context, lease: { ...lease, start_date, end_date } })).allowed;
    expect(await ask('2026-11-21T09:01', '2026-11-22T09:00:01')).toBe(false);
    expect(await ask('2026-11-21T09:01', '2026-11-22T09:00:00')).toBe(true);
    now = '2026-11-21T09:00:01Z';
    expect(await ask('2026-11-21T09:01', '2026-11-22T09:00:01')).toBe(true);
    now = '2026-11-21T09:01:00Z';
    expect(await ask('2026-11-21T09:01', '2026-11-22T09:00:01')).toBe(false);
    expect(await ask('2026-11-21T09:02', '2026-11-22T09:00:01')).toBe(true);
  });

  it.each(['2001-01-01T00:00:00Z', '2099-01-01T00:00:00Z'])(
    'does not move fixed dates with the clock: %s',
    async (now) => {
      await expectAtCreate([START], { start_date: '2026-12-01T09:00' }, null, now);
      await expectAtCreate([START], { start_date: '2026-12-01T08:59' }, TOO_EARLY, now);
      await expectAtCreate([END], { end_date: '2026-12-03T09:00' }, null, now);
      await expectAtCreate([END], { end_date: '2026-12-03T09:01' }, TOO_LATE, now);
    },
  );
});

describe('LeaseDatesFilter at update, of a lease from 2026-12-01T09:00 to 2026-12-03T09:00', () => {
  const LATE_START = early('2026-12-02T09:00:00');
  const EARLY_END = late('2026-12-02T09:00:00');
  const WIDE = [early('2026-11-30'), late('2026-12-06')];
  const EXTENDED = updatePending().lease;
  const FROM_NOW = [early('+0'), late(`+${30 * DAY}`)];
  const RUNNING = { start_date: '2026-11-01T09:00:00', end_date: '2026-11-22T09:00:00' };
  const UNDATED: Lease = JSON.parse('{"start_date": null, "end_date": null}');
  const LAST = { start_date: '2026-12-02T09:00:00', end_date: '2026-12-02T09:00:00' };

  it.each<[readonly string[], Lease, Message, Lease?]>([
    [[late('2026-12-05T09:00:00')], EXTENDED, null],
    [
      [late('2026-12-05T08:59:59')],
      EXTENDED,
      exactly('The lease ends at 2026-12-05T09:00:00Z; no lease may end after 2026-12-05T08:59:59Z.'),
    ],
    // A date that is out of range may stay, and not move further out.
    [[LATE_START], { start_date: '2026-12-01T09:00:00' }, null],
    [[LATE_START], { start_date: '2026-12-01T10:00:00+01:00' }, null],
    [[LATE_START], { start_date: '2026-12-01T09:00:00.000001' }, null],
    [[LATE_START], { start_date: '2026-12-01T08:59:59.999999' }, 'start before 2026-12-02T09:00:00Z.$'],
    [[EARLY_END], { end_date: '2026-12-03T09:00:00' }, null],
    [[EARLY_END], { end_date: '2026-12-03T10:00:00+01:00' }, null],
    [[EARLY_END], { end_date: '2026-12-03T08:59:59.999999' }, null],
    [[EARLY_END], { end_date: '2026-12-03T09:00:00.000001' }, 'end after 2026-12-02T09:00:00Z.$'],
    [WIDE, { start_date: '2026-11-30', end_date: '2026-12-06' }, null],
    [WIDE, { start_date: '2026-11-29T23:59', end_date: '2026-12-06' }, TOO_EARLY],
    [WIDE, { start_date: '2026-11-30', end_date: '2026-12-06T00:01' }, TOO_LATE],
    // A date that is not sent is not checked.
    [[LATE_START, EARLY_END], {}, null],
    [[LATE_START, EARLY_END], { start_date: '2026-12-01T09:00:00' }, null],
    [[LATE_START, EARLY_END], { end_date: '2026-12-02' }, null],
    [[LATE_START, EARLY_END], { end_date: '2026-12-04' }, TOO_LATE],
    // A running lease has started before the earliest start.
    [FROM_NOW, { start_date: RUNNING.start_date, end_date: '2026-12-21T09:00:30' }, null, RUNNING],
    [FROM_NOW, { end_date: '2026-12-21T09:00:31' }, TOO_LATE, RUNNING],
    // A date that the current lease does not have is checked.
    [[LATE_START, EARLY_END], LAST, null, UNDATED],
    [[LATE_START, EARLY_END], { ...LAST, start_date: '2026-12-02T08:59' }, TOO_EARLY, UNDATED],
    [[LATE_START, EARLY_END], { ...LAST, end_date: '2026-12-02T09:01' }, TOO_LATE, UNDATED],
  ])('with %j, %j', async (lines, lease, expected, current = {}) => {
    const { context, currentLease } = updatePending();
    const request = { context, currentLease: { ...currentLease, ...current }, lease };
    expectMessage(await (await loadFilter(NAME, lines)).checkUpdate(request), expected);
  });
});

describe('the options of LeaseDatesFilter', () => {
  it.each([
    '+',
    '+-1',
    '-1',
    'tomorrow',
    '+1.5',
    '+ 5',
    '5+5',
    '86400',
    '+1000000000000000',
    '2026-02-30',
    '2026-12-01T25:00',
    '12',
    // Four weeks in seconds without their plus, and a day of the year 2419.
    '2419200',
  ])('refuse %j, with file, line and text', async (text) => {
    const expected = 'expected a date of ISO 8601, or +seconds from now such as +86400, got';
    expect(await mistakes(NAME, [early(text), late(text)])).toEqual([
      expect.stringContaining(
        `:3: [enforcement] lease_dates_earliest_start: ${expected} "${text}" (it is neither)`,
      ),
      expect.stringContaining(
        `:4: [enforcement] lease_dates_latest_end: ${expected} "${text}" (it is neither)`,
      ),
    ]);
  });

  it.each([
    ['2026-12-01', '2026-11-30T23:59:59.999999', true],
    ['2026-12-01T00:00:00-01:00', '2026-12-01T00:00:00', true],
    ['+10', '+9', true],
    ['2026-12-01', '2026-12-01', false],
    ['+10', '+10', false],
    ['+10', '1970-01-01', false],
    ['2026-12-01', '+1', false],
  ])(
    'refuse a latest end before the earliest start, if both are dates or both count from now: %s, %s',
    async (start, end, isRefused) => {
      const contradiction =
        'blazar.conf:4: [enforcement] lease_dates_latest_end: expected a date that is not before lease_dates_earliest_start';
      expect(await mistakes(NAME, [early(start), late(end)])).toEqual(isRefused ? [contradiction] : []);
    },
  );
});
