import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Durations } from '../../src/decisions/statistics.ts';

function quantilesOf(values: readonly number[]) {
  const durations = new Durations();
  for (const value of values) {
    durations.add(value);
  }
  return durations.quantiles();
}

describe('Durations', () => {
  it('has quantiles within a thousandth of what sorting gives, and the longest as it is', () => {
    // The log holds whole microseconds.
    const duration = fc
      .oneof(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 1, max: 7_200_000_000 }))
      .map((microseconds) => microseconds / 1000);
    fc.assert(
      fc.property(fc.array(duration, { minLength: 1, maxLength: 300 }), (values) => {
        const sorted = values.toSorted((one, other) => one - other);
        const exact = (part: number) =>
          sorted[Math.max(Math.round(part * sorted.length), 1) - 1] ?? Number.NaN;
        const { p50, p90, p99, max } = quantilesOf(values);
        expect(max).toBe(sorted.at(-1));
        for (const [estimated, part] of [
          [p50, 0.5],
          [p90, 0.9],
          [p99, 0.99],
        ] as const) {
          expect(Math.abs(estimated - exact(part)) / exact(part)).toBeLessThanOrEqual(0.001);
        }
      }),
    );
  });

  it('knows a duration of nothing, and none at all', () => {
    expect(quantilesOf([0, 0, 0])).toEqual({ p50: 0, p90: 0, p99: 0, max: 0 });
    expect(quantilesOf([])).toEqual({ p50: 0, p90: 0, p99: 0, max: 0 });
  });

  it('takes durations that are longer than any decision', () => {
    expect(quantilesOf([1e300]).max).toBe(1e300);
    expect(quantilesOf([7_200_001]).p50).toBe(7_200_001);
  });

  it('takes no more memory for a million than for some thousand', () => {
    const durations = new Durations();
    for (let count = 0; count < 1_000_000; count += 1) {
      durations.add((count % 1000) + 0.5);
    }
    const { p50, p99, max } = durations.quantiles();
    expect(p50 / 500).toBeCloseTo(1, 1);
    expect(p99 / 990).toBeCloseTo(1, 1);
    expect(max).toBe(999.5);
  });
});
