import { describe, expect, it } from 'vitest';
import { besideReference, compare, median } from '../../bench/harness/results.ts';
import type { Comparison } from '../../bench/harness/suite.ts';

const COMPARISON: Comparison = { name: 'row', measured: 'ours', comparedWith: 'theirs', of: 'time' };

const run = (ours: number, theirs: number) =>
  new Map([
    ['ours', ours],
    ['theirs', theirs],
  ]);

describe('median', () => {
  it('is halfway between the two middle values', () => {
    expect(median([10, 1, 4, 2])).toBe(3);
  });
});

describe('compare', () => {
  it('takes the ratio within each run, and then the median', () => {
    // The ratio of the medians (20 / 10) would say 2.
    const { ratio, spread } = compare('suite', COMPARISON, [run(10, 40), run(20, 5), run(30, 10)]);
    expect(ratio).toBe(3);
    expect(spread).toEqual({ min: 0.25, max: 4 });
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

  it('rejects a comparison with a subject that was not measured', () => {
    const comparison = { ...COMPARISON, comparedWith: 'nobody' };
    expect(() => compare('suite', comparison, [run(20, 10)])).toThrow('there is no subject nobody');
  });
});

describe('besideReference', () => {
  const beside = (comparison: Partial<Comparison>, ...runs: (readonly [ours: number, theirs: number])[]) =>
    besideReference(
      { ...COMPARISON, ...comparison },
      runs.map(([ours, theirs]) => new Map([...run(ours, 1), ['ours, at the reference', theirs]])),
    );

  it('takes the ratio within each run, and then the median', () => {
    // The ratio of the medians (40 / 20) would say 2.
    expect(beside({}, [10, 40], [20, 60], [40, 20])).toEqual({
      value: 40,
      ratio: 3,
      spread: { min: 0.5, max: 4 },
      worse: false,
    });
  });

  it.each([
    { of: 'time', target: { atMost: 1 } },
    { of: 'time' },
    { of: 'memory', target: { atMost: 1 } },
    { of: 'memory' },
    { of: 'count', target: { atMost: 1 } },
    { of: 'count' },
  ] as const)('is above 1 where there is less than at the reference: $of, $target', (comparison) => {
    expect(beside(comparison, [10, 20])).toMatchObject({ value: 20, ratio: 2, worse: false });
    expect(beside(comparison, [20, 10])).toMatchObject({ value: 10, ratio: 0.5, worse: true });
  });

  it('is above 1 where more of something that is to be many is counted', () => {
    const comparison = { of: 'count', target: { atLeast: 1 } } as const;
    expect(beside(comparison, [20, 10])).toMatchObject({ value: 10, ratio: 2, worse: false });
    expect(beside(comparison, [10, 20])).toMatchObject({ value: 20, ratio: 0.5, worse: true });
  });

  it.each([{ of: 'rate', target: { atLeast: 0.5 } }, { of: 'rate' }] as const)(
    'is above 1 where a rate is higher, which is kept as a time: $target',
    (comparison) => {
      expect(beside(comparison, [500, 1000])).toMatchObject({ value: 1_000_000, ratio: 2, worse: false });
      expect(beside(comparison, [1000, 500])).toMatchObject({ value: 2_000_000, ratio: 0.5, worse: true });
    },
  );

  it.each([
    { most: 94.9, worse: true },
    { most: 95, worse: false },
  ])('is worse when the whole spread is below 0.95, here up to 0.01 × $most: $worse', ({ most, worse }) => {
    expect(beside({}, [100, 50], [100, most], [100, 60])).toMatchObject({ ratio: 0.6, worse });
  });

  it('is 1 where both are 0, and cannot be said where one is', () => {
    expect(beside({ of: 'memory' }, [0, 0])).toMatchObject({ value: 0, ratio: 1, worse: false });
    expect(beside({ of: 'memory' }, [0, 5])).toEqual({ notComparable: 'one of them is 0' });
  });

  it('cannot be said unless it was measured in every run', () => {
    const runs = [new Map([...run(1, 1), ['ours, at the reference', 2]]), run(1, 1)];
    expect(besideReference(COMPARISON, runs)).toEqual({ notComparable: 'not measured in every run' });
  });
});
