import { describe, expect, it } from 'vitest';
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
});
