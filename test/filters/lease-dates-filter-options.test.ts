import { describe, expect, it } from 'vitest';
import { ALLOWED, REJECTED } from '../support/decisions.ts';
import { DAY, ending } from './lease-dates.ts';
import { mistakes } from './loaded.ts';

describe('the options of LeaseDatesFilter', () => {
  it.each([
    '+',
    '+-1',
    '-1',
    'tomorrow',
    '+1.5',
    '+1e3',
    '+ 5',
    '+1_000',
    '86400',
    '+1000000000000000',
    '2026-02-30',
    '2026-12-01T25:00',
    '12',
  ])('refuse %j, with file, line and text', async (text) => {
    const expected = 'expected a date of ISO 8601, or +seconds from now such as +86400, got';
    expect(
      await mistakes('LeaseDatesFilter', [
        `lease_dates_earliest_start = ${text}`,
        `lease_dates_latest_end = ${text}`,
      ]),
    ).toEqual([
      expect.stringContaining(
        `blazar.conf:3: [enforcement] lease_dates_earliest_start: ${expected} "${text}" (it is neither)`,
      ),
      expect.stringContaining(
        `blazar.conf:4: [enforcement] lease_dates_latest_end: ${expected} "${text}" (it is neither)`,
      ),
    ]);
  });

  it('refuse a latest end before the earliest start, if both are dates or both count from now', async () => {
    const contradiction =
      'blazar.conf:4: [enforcement] lease_dates_latest_end: expected a date that is not before lease_dates_earliest_start';
    const both = (start: string, end: string) =>
      mistakes('LeaseDatesFilter', [
        `lease_dates_earliest_start = ${start}`,
        `lease_dates_latest_end = ${end}`,
      ]);
    expect(await both('2026-12-01', '2026-11-30T23:59:59.999999')).toEqual([contradiction]);
    expect(await both('2026-12-01T00:00:00-01:00', '2026-12-01T00:00:00')).toEqual([contradiction]);
    expect(await both('+10', '+9')).toEqual([contradiction]);
    for (const [start, end] of [
      ['2026-12-01', '2026-12-01'],
      ['+10', '+10'],
      ['+10', '1970-01-01'],
      ['2026-12-01', '+1'],
    ] as const) {
      expect(await both(start, end), `${start} ${end}`).toEqual([]);
    }
  });

  it('can be written in YAML, with or without quotes', async () => {
    for (const [end, last] of [
      [`+${DAY}`, '2026-11-22T09:00:30.500000'],
      [`"+${DAY}"`, '2026-11-22T09:00:30.500000'],
      ['2026-11-22', '2026-11-22T00:00:00.000000'],
      ['2026-11-22 09:00', '2026-11-22T09:00:00.000000'],
      ['"2026-11-22T10:00:00+01:00"', '2026-11-22T09:00:00.000000'],
    ] as const) {
      const yaml = `enforcement:\n  enabled_filters: [LeaseDatesFilter]\n  lease_dates_latest_end: ${end}\n`;
      const setup = { yaml };
      expect(await ending([], last, setup), end).toMatchObject(ALLOWED);
      expect(await ending([], last.replace(/0$/, '1'), setup), end).toMatchObject(REJECTED);
    }
  });

  it('are refused in YAML with file and line too', async () => {
    const yaml = 'enforcement:\n  enabled_filters: [LeaseDatesFilter]\n  lease_dates_latest_end: tomorrow\n';
    expect(await mistakes('LeaseDatesFilter', [], { yaml })).toEqual([
      expect.stringContaining(
        'blazar.yaml:3: [enforcement] lease_dates_latest_end: expected a date of ISO 8601',
      ),
    ]);
  });
});
