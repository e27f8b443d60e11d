import { describe, expect, it } from 'vitest';
import { ALLOWED, REJECTED } from '../support/decisions.ts';
import { createPhysicalHost } from '../support/requests.ts';
import { testFilter } from './contract.ts';
import { create, DAY, ending, load, starting } from './lease-dates.ts';

const START = ['lease_dates_earliest_start = 2026-12-01T09:00:00'];
const END = ['lease_dates_latest_end = 2026-12-03T09:00:00'];

testFilter({
  name: 'LeaseDatesFilter',
  options: () => ({
    lease_dates_earliest_start: '2026-12-01T09:00:00',
    lease_dates_latest_end: '2027-01-02T00:00:00',
  }),
});

describe('LeaseDatesFilter at create', () => {
  it('allows every date if neither option is set', async () => {
    for (const dates of [
      { start_date: '1970-01-01', end_date: '1970-01-02' },
      { start_date: '2026-12-01', end_date: '9999-12-31' },
    ]) {
      expect(await create([], dates)).toMatchObject({ allowed: true, failed: false });
    }
  });

  it('allows a lease that starts exactly at the earliest start, and rejects one a microsecond earlier', async () => {
    expect(await starting(START, '2026-12-01T09:00:00.000000')).toMatchObject(ALLOWED);
    expect(await starting(START, '2026-12-01T08:59:59.999999')).toMatchObject({
      allowed: false,
      failed: false,
      filter: 'LeaseDatesFilter',
      message:
        'The lease starts at 2026-12-01T08:59:59.999999Z; no lease may start before 2026-12-01T09:00:00Z.',
    });
  });

  it('allows a lease that ends exactly at the latest end, and rejects one a microsecond later', async () => {
    expect(await ending(END, '2026-12-03T09:00:00.000000')).toMatchObject(ALLOWED);
    expect(await ending(END, '2026-12-03T09:00:00.000001')).toMatchObject({
      allowed: false,
      failed: false,
      filter: 'LeaseDatesFilter',
      message: 'The lease ends at 2026-12-03T09:00:00.000001Z; no lease may end after 2026-12-03T09:00:00Z.',
    });
  });

  it('shows fractions of a second, also before 1970', async () => {
    expect((await starting(START, '1969-12-31T23:59:59.25')).message).toContain(
      'The lease starts at 1969-12-31T23:59:59.25Z;',
    );
  });

  it('reports the start first if both dates are out of range', async () => {
    const both = await create([...START, ...END], {
      start_date: '2026-11-30',
      end_date: '2026-12-31',
    });
    expect(both.message).toContain('The lease starts at 2026-11-30T00:00:00Z');
  });

  it('checks only the start against the earliest start, and only the end against the latest end', async () => {
    expect(await starting(START, '2099-01-01')).toMatchObject(ALLOWED);
    const dates = { start_date: '2001-01-01', end_date: '2001-01-02' };
    expect(await create(END, dates)).toMatchObject(ALLOWED);
    expect(
      await create(START, { ...dates, start_date: '2026-12-01T09:00', end_date: '9999-12-31' }),
    ).toMatchObject(ALLOWED);
  });

  it.each([
    '2026-12-01T09:00:00',
    '2026-12-01 09:00',
    '2026-12-01T10:00:00+01:00',
    '2026-12-01T02:00:00.000-07:00',
    '20261201T090000Z',
    '2026-W49-2T09:00',
  ])('reads %s in the configuration as the same instant', async (text) => {
    const lines = [`lease_dates_earliest_start = ${text}`];
    expect(await starting(lines, '2026-12-01T09:00:00Z')).toMatchObject(ALLOWED);
    expect(await starting(lines, '2026-12-01T08:59:59.999999Z')).toMatchObject(REJECTED);
  });

  it('reads a date without a time as the start of that day', async () => {
    const lines = ['lease_dates_latest_end = 2026-12-03'];
    expect(await ending(lines, '2026-12-03T00:00:00')).toMatchObject(ALLOWED);
    expect(await ending(lines, '2026-12-03T00:01:00')).toMatchObject(REJECTED);
  });
});

describe('LeaseDatesFilter with +seconds', () => {
  it('counts the latest end from now, to the millisecond of the clock', async () => {
    const lines = [`lease_dates_latest_end = +${DAY}`];
    expect(await ending(lines, '2026-11-22T09:00:30.500000')).toMatchObject(ALLOWED);
    expect(await ending(lines, '2026-11-22T09:00:30.500001')).toMatchObject(REJECTED);
  });

  it('counts the earliest start from the beginning of the current minute, as Blazar cuts "now" to the minute', async () => {
    const lines = ['lease_dates_earliest_start = +0'];
    for (const now of ['2026-11-21T09:00:00.000Z', '2026-11-21T09:00:59.999Z']) {
      const setup = { now: () => now };
      expect(await starting(lines, '2026-11-21 09:00', setup), now).toMatchObject(ALLOWED);
      expect(await starting(lines, '2026-11-21T08:59:59.999999', setup), now).toMatchObject(REJECTED);
    }
    const later = ['lease_dates_earliest_start = +3600'];
    expect(await starting(later, '2026-11-21T10:00:00')).toMatchObject(ALLOWED);
    expect(await starting(later, '2026-11-21T09:59:59.999999')).toMatchObject(REJECTED);
  });

  it('names the current value of the date, and the option as written', async () => {
    const setup = { now: () => '2026-11-21T09:00:30Z' };
    expect((await starting(['lease_dates_earliest_start = +3600'], '2026-11-21T09:59', setup)).message).toBe(
      'The lease starts at 2026-11-21T09:59:00Z; no lease may start before 2026-11-21T10:00:00Z (+3600 seconds from now).',
    );
    expect((await ending(['lease_dates_latest_end = +0060'], '2026-11-21T09:02', setup)).message).toBe(
      'The lease ends at 2026-11-21T09:02:00Z; no lease may end after 2026-11-21T09:01:30Z (+0060 seconds from now).',
    );
  });

  it('moves with the clock, without a reload', async () => {
    let now = '2026-11-21T09:00:00Z';
    const enforcement = await load([`lease_dates_latest_end = +${DAY}`, 'lease_dates_earliest_start = +60'], {
      now: () => now,
    });
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

  it('does not move fixed dates with the clock', async () => {
    for (const now of ['2001-01-01T00:00:00Z', '2099-01-01T00:00:00Z']) {
      const setup = { now: () => now };
      expect(await starting(START, '2026-12-01T09:00', setup), now).toMatchObject(ALLOWED);
      expect(await starting(START, '2026-12-01T08:59', setup), now).toMatchObject(REJECTED);
      expect(await ending(END, '2026-12-03T09:00', setup), now).toMatchObject(ALLOWED);
      expect(await ending(END, '2026-12-03T09:01', setup), now).toMatchObject(REJECTED);
    }
  });

  it('accepts a distance longer than any lease', async () => {
    const [start, end] = [
      'lease_dates_earliest_start = +999999999999',
      'lease_dates_latest_end = +999999999999',
    ];
    expect(await starting([start], '9999-12-30')).toMatchObject({ allowed: false, failed: false });
    expect(await ending([end], '9999-12-31')).toMatchObject(ALLOWED);
  });
});
