import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { durationMinutes, durationSeconds } from '../../../src/skypilot/index.ts';

describe('a duration', () => {
  it.for([
    ['10', 10, 10],
    [10, 10, 10],
    [10n, 10, 10],
    ['0', 0, 0],
    ['10m', 10, 600],
    ['1H', 60, 3600],
    ['2d', 2880, 172_800],
    ['1w', 10_080, 604_800],
    ['30s', undefined, 30],
  ] as const)('is read: %s', ([duration, minutes, seconds]) => {
    expect([durationMinutes(duration), durationSeconds(duration)]).toEqual([minutes, seconds]);
  });

  it.for([
    ...['', ' ', '-1', '1.5h', '10 m', ' 10', '10m\n', '1e3m', '１０', '10x', 'm', '1h30m', '9'.repeat(16)],
    ...[-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, null, undefined, true, {}, [10]],
  ])('is none: %j', (text) => {
    expect([durationMinutes(text), durationSeconds(text)]).toEqual([undefined, undefined]);
  });

  it('has sixty seconds for each minute, whatever its unit', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 9 }), fc.constantFrom(...'mhdwMHDW'), (amount, unit) => {
        expect(durationSeconds(`${amount}${unit}`)).toBe(
          60 * (durationMinutes(`${amount}${unit}`) ?? Number.NaN),
        );
      }),
    );
  });
});
