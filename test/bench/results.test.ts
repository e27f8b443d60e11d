import { describe, expect, it } from 'vitest';
import { compare, median } from '../../bench/harness/results.ts';
import type { Comparison } from '../../bench/harness/suite.ts';

const COMPARISON: Comparison = { name: 'row', measured: 'ours', comparedWith: 'theirs', of: 'time' };

const run = (ours: number, theirs: number) =>
  new Map([
    ['ours', ours],
    ['theirs', theirs],
  ]);

describe('median', () => {
  it('is the one in the middle, whatever the order', () => {
    expect(median([9, 1, 5])).toBe(5);
  });

  it('is halfway between the two middle values', () => {
    expect(median([10, 1, 4, 2])).toBe(3);
  });

  it('rejects an empty list', () => {
    expect(() => median([])).toThrow(RangeError);
  });
});

describe('compare', () => {
  it('takes the ratio within each run, and then the median', () => {
    // The ratio of the medians (20 / 10) would say 2.
    const { ratio, spread } = compare('suite', COMPARISON, [run(10, 40), run(20, 5), run(30, 10)]);
    expect(ratio).toBe(3);
    expect(spread).toEqual({ min: 0.25, max: 4 });
  });

  it('shows the median time of each side', () => {
    const { measured, comparedWith } = compare('suite', COMPARISON, [run(10, 40), run(20, 5), run(30, 10)]);
    expect(measured).toEqual({ what: 'ours', value: 20, unit: 'ns' });
    expect(comparedWith).toEqual({ what: 'theirs', value: 10, unit: 'ns' });
  });

  it('turns times into rates where rates are compared', () => {
    const { measured, comparedWith, ratio } = compare('suite', { ...COMPARISON, of: 'rate' }, [
      run(500, 2000),
    ]);
    expect(measured).toEqual({ what: 'ours', value: 2_000_000, unit: 'per second' });
    expect(comparedWith).toEqual({ what: 'theirs', value: 500_000, unit: 'per second' });
    expect(ratio).toBe(4);
  });

  it.each([
    ['memory', 'bytes'],
    ['count', 'times'],
  ] as const)('compares %s as it was measured', (of, unit) => {
    const { measured, comparedWith, ratio } = compare('suite', { ...COMPARISON, of }, [run(500, 2000)]);
    expect(measured).toEqual({ what: 'ours', value: 500, unit });
    expect(comparedWith).toEqual({ what: 'theirs', value: 2000, unit });
    expect(ratio).toBe(0.25);
  });

  it.each([
    { target: { atMost: 2 }, met: true },
    { target: { atMost: 1.9 }, met: false },
    { target: { atLeast: 2 }, met: true },
    { target: { atLeast: 2.1 }, met: false },
  ])('says whether a ratio of 2 meets $target: $met', ({ target, met }) => {
    expect(compare('suite', { ...COMPARISON, target }, [run(20, 10)])).toMatchObject({ target, met });
  });

  it('gives no verdict on a row without a target', () => {
    expect(compare('suite', COMPARISON, [run(20, 10)])).toMatchObject({ target: null, met: null });
  });

  it('rejects a comparison with a subject that was not measured', () => {
    const comparison = { ...COMPARISON, comparedWith: 'nobody' };
    expect(() => compare('suite', comparison, [run(20, 10)])).toThrow('there is no subject nobody');
  });
});
