import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatUnitHours, MAX_AMOUNT, parseMillionths, parseUnitHours } from '../../src/filter/claim.ts';

const HOUR = 3_600_000_000n;
const amount = fc.bigInt({ min: -MAX_AMOUNT, max: MAX_AMOUNT });

describe('parseMillionths', () => {
  it.each([
    ['0', 0n],
    ['1', 1_000_000n],
    [' 2.5\n', 2_500_000n],
    ['0.000001', 1n],
    ['0.1000000000', 100_000n],
    ['007', 7_000_000n],
    ['999999999999999.999999', 999_999_999_999_999_999_999n],
  ])('reads %j exactly', (text, millionths) => {
    expect(parseMillionths(text)).toBe(millionths);
  });

  it.each([
    '',
    ' ',
    '-1',
    '+1',
    '.5',
    '1.',
    '1e3',
    '0x10',
    '1,5',
    '1_000',
    'NaN',
    'Infinity',
    '0.0000001',
    '1 2',
    '１',
  ])('refuses %j', (text) => {
    expect(parseMillionths(text)).toBeUndefined();
  });
});

describe('parseUnitHours', () => {
  it('reads exactly what formatUnitHours writes without rounding', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: MAX_AMOUNT / 360_000n }), (steps) => {
        const written = formatUnitHours(steps * 360_000n);
        expect(parseUnitHours(written)).toBe(steps * 360_000n);
      }),
    );
  });

  it('refuses amounts that are too large for the database', () => {
    expect(parseUnitHours('2562047788.015215')).toBe(9_223_372_036_854_774_000n);
    expect(parseUnitHours('2562047788.015216')).toBeUndefined();
    expect(parseUnitHours('1000')).toBe(1000n * HOUR);
    expect(parseUnitHours('many')).toBeUndefined();
  });
});

describe('formatUnitHours', () => {
  it.each([
    [0n, '0', '0'],
    [HOUR, '1', '1'],
    [HOUR / 2n, '0.5', '0.5'],
    [1n, '0.0001', '0'],
    [HOUR - 1n, '1', '0.9999'],
    [HOUR + 1n, '1.0001', '1'],
    [-1n, '0', '-0.0001'],
    [-HOUR - 1n, '-1', '-1.0001'],
    [10n * HOUR, '10', '10'],
    [MAX_AMOUNT, '2562047788.0153', '2562047788.0152'],
  ])('writes %s, rounded up and down', (value, up, down) => {
    expect([formatUnitHours(value), formatUnitHours(value, 'up'), formatUnitHours(value, 'down')]).toEqual([
      up,
      up,
      down,
    ]);
  });

  it('never shows less than the amount when it rounds up, or more when it rounds down', () => {
    const shown = (text: string) => {
      const size = parseUnitHours(text.replace('-', '')) ?? -1n;
      return text.startsWith('-') ? -size : size;
    };
    fc.assert(
      fc.property(amount, (value) => {
        fc.pre(value < MAX_AMOUNT - HOUR && value > HOUR - MAX_AMOUNT);
        const up = shown(formatUnitHours(value, 'up'));
        const down = shown(formatUnitHours(value, 'down'));
        expect(up).toBeGreaterThanOrEqual(value);
        expect(down).toBeLessThanOrEqual(value);
        expect(up - down).toBeLessThanOrEqual(360_000n);
      }),
    );
  });
});
