import fc from 'fast-check';
import { DateTime, FixedOffsetZone } from 'luxon';
import { describe, expect, it } from 'vitest';
import { formatDuration, type Instant, MICROSECONDS_PER_SECOND, toInstant } from '../../src/lease/dates.ts';

const NOON = 1_764_590_400_000_000n; // 2025-12-01T12:00:00Z

describe('toInstant', () => {
  it.each([
    ['2025-12-01T12:00:00', NOON],
    ['2025-12-01 12:00:00', NOON],
    ['2025-12-01T12:00:00Z', NOON],
    ['2025-12-01t12:00:00z', NOON],
    ['2025-12-01T13:30:00+01:30', NOON],
    ['2025-12-01T07:00:00-0500', NOON],
    ['2025-12-01T07:00:00-05', NOON],
    ['2025-12-01T12:00:00.000001', NOON + 1n],
    ['2025-12-01T12:00:00,25', NOON + 250_000n],
    ['2025-12-01 12:00:00.811042', NOON + 811_042n],
    ['2025-12-01T12:00:00.1234569', NOON + 123_456n],
    ['2020-05-13T00:00:00.012345+02:00', 1_589_320_800_012_345n],
    ['2025-12-01', NOON - 43_200n * MICROSECONDS_PER_SECOND],
    ['20251201T120000', NOON],
    ['20251201T120000.000001Z', NOON + 1n],
    ['2025-335T12:00:00', NOON],
    ['2025-W49-1T12:00:00', NOON],
    ['2025-11-30T24:00:00', NOON - 43_200n * MICROSECONDS_PER_SECOND],
    ['1969-12-31T23:59:59.999999', -1n],
  ])('reads %s', (text, instant) => {
    expect(toInstant(text)).toBe(instant);
  });

  it.each([
    ...[
      '',
      ' ',
      'now',
      'tomorrow',
      '2025',
      '12',
      'T12:00',
      '2025-12',
      '0050-01-01',
      '20251301',
      '1764590400',
    ],
    ...['2025-W60-1', '2025-400', '2025-13-01T00:00:00', '2025-00-01T00:00:00', '2025-02-29T00:00:00'],
    ...['2025-04-31', '2025-12-00', '2025-12-01T24:00:01', '2025-12-01T25:00:00', '2025-12-01T12:60:00'],
    ...['2025-12-01T12:00:61', '2025-12-01T12:00:00+25:00', '2025-12-01T12:00:00+01:75'],
    ...['2025-12-01T12:00:00 Europe/Berlin', '2025-12-01T12:00:00Z; drop', '2025-12-01T12:00:00\n'],
    ...['2025-12-01T12:0x', '2025-1a-01T12:00:00', '2:25-12-01T12:00:00', '20/5-12-01T12:00:00'],
    '２０２５-12-01T12:00:00',
    `2025-12-01T12:00:00.${'1'.repeat(100)}`,
    'x'.repeat(1_000_000),
  ])('refuses the text %j', (text) => {
    expect(toInstant(text)).toBeUndefined();
  });

  it.each<unknown>([
    ...[undefined, null, 0, 1764590400, true, {}, [], Symbol('x'), () => 0],
    { isLuxonDateTime: true, valueOf: 5 },
    ...[new Date(Number.NaN), DateTime.invalid('x')],
  ])('refuses the value %s', (value) => {
    expect(toInstant(value)).toBeUndefined();
  });

  it('reads Date and DateTime', () => {
    expect(toInstant(new Date('2025-12-01T12:00:00.123Z'))).toBe(NOON + 123_000n);
    expect(toInstant(DateTime.fromISO('2025-12-01T13:00:00.123+01:00'))).toBe(NOON + 123_000n);
  });

  it('agrees with luxon on every date to the millisecond', () => {
    const dates = fc.date({
      min: new Date('0200-01-01T00:00:00Z'),
      max: new Date('9998-12-31T00:00:00Z'),
      noInvalidDate: true,
    });
    const offsets = fc.integer({ min: -14 * 60, max: 14 * 60 });
    fc.assert(
      fc.property(dates, offsets, (date, minutes) => {
        const text =
          DateTime.fromJSDate(date, { zone: 'utc' }).setZone(FixedOffsetZone.instance(minutes)).toISO() ?? '';
        expect(toInstant(text)).toBe(BigInt(date.getTime()) * 1000n);
        expect(toInstant(text.replace('T', ' '))).toBe(BigInt(date.getTime()) * 1000n);
      }),
    );
  });

  it.each([1600, 1900, 1970, 2000, 2023, 2024, 2100, 9999])('knows which days the year %d has', (year) => {
    for (let month = 0; month <= 13; month += 1) {
      for (let day = 0; day <= 32; day += 1) {
        const text = `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}T09:30:15`;
        const date = new Date(Date.UTC(year, month - 1, day, 9, 30, 15));
        const exists = date.toISOString().startsWith(text);
        expect([text, toInstant(text)]).toEqual([text, exists ? BigInt(date.getTime()) * 1000n : undefined]);
      }
    }
  });

  it('keeps microseconds, and the order of dates', () => {
    const microseconds = fc.bigInt({ min: 0n, max: 4_102_444_800_000_000n });
    const text = (instant: Instant) =>
      new Date(Number(instant / 1000n)).toISOString().replace('Z', String(instant % 1000n).padStart(3, '0'));
    fc.assert(
      fc.property(microseconds, microseconds, (a, b) => {
        expect(toInstant(text(a))).toBe(a);
        expect((toInstant(text(a)) ?? 0n) < (toInstant(text(b)) ?? 0n)).toBe(a < b);
      }),
    );
  });

  it('never throws, whatever the text', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'0123456789-:T+.Z W,') })),
        (text) => {
          expect(['bigint', 'undefined']).toContain(typeof toInstant(text));
        },
      ),
      { numRuns: 700 },
    );
  });
});

describe('formatDuration', () => {
  it.each([
    [0n, '0 seconds'],
    [1n, '0.000001 seconds'],
    [1_000_000n, '1 seconds (1 second)'],
    [60_000_000n, '60 seconds (1 minute)'],
    [1_500_000n, '1.5 seconds (1 second)'],
    [86_400_000_000n, '86400 seconds (1 day)'],
    [172_801_000_000n, '172801 seconds (2 days, 1 second)'],
    [3_153_600_000_000_000n, '3153600000 seconds (36500 days)'],
  ])('formats %d microseconds in seconds and in words', (duration, text) => {
    expect(formatDuration(duration)).toBe(text);
  });
});
