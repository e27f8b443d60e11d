import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toInstant } from '../../../../src/lease/dates.ts';
import { share, shownDate, windowScale } from '../../../../src/server/console/parts/time-scale.ts';

const at = (text: string) => toInstant(text) ?? 0n;
const labels = (start: string, end: string) =>
  windowScale({ from: at(start), until: at(end) }).ticks.map(({ label }) => label);

describe('the time scale', () => {
  it.for([
    ['hours', '2026-11-20T23:00:00', '2026-11-22T01:00:00', ['21 Nov', '06:00', '12:00', '18:00', '22 Nov']],
    [
      'days',
      '2026-11-19T20:00:00',
      '2026-11-24T04:00:00',
      ['20 Nov', '21 Nov', '22 Nov', '23 Nov', '24 Nov'],
    ],
    ['weeks', '2026-11-01', '2026-12-05', ['2 Nov', '9 Nov', '16 Nov', '23 Nov', '30 Nov']],
    ['months', '2026-09-15', '2027-01-15', ['Oct 2026', 'Nov 2026', 'Dec 2026', 'Jan 2027']],
    ['half years', '2025-11-01', '2027-12-01', ['Jan 2026', 'Jul 2026', 'Jan 2027', 'Jul 2027']],
  ] as const)('has ticks of %s', ([, start, end, expected]) => {
    expect(labels(start, end)).toEqual(expected);
  });

  it('keeps everything inside, in order and wide enough to be seen, whatever the dates are', () => {
    const day = fc.bigInt({ min: at('0101-01-01'), max: at('9998-01-01') });
    const length = fc.bigInt({ min: 1n, max: 10n ** 15n });
    const spans = fc.array(fc.tuple(day, length), { maxLength: 5 });
    const window = { from: at('2026-11-01'), until: at('2026-12-01') };
    fc.assert(
      fc.property(spans, (some) => {
        const scale = windowScale(window);
        expect(scale.ticks.length).toBeLessThanOrEqual(9);
        for (const [start, long] of some) {
          const { x, width } = scale.bar(start, start + long);
          const left = Number.parseFloat(x);
          const right = Number.parseFloat(x) + Number.parseFloat(width);
          expect(left).toBeGreaterThanOrEqual(0);
          expect(right).toBeLessThanOrEqual(100.01);
          expect(right - left).toBeGreaterThanOrEqual(0.69);
        }
      }),
    );
  });
});

describe('what is shown', () => {
  it('is a date, and its time where it has one', () => {
    expect(
      ['2026-12-01', '2026-12-01T09:00', '2026-12-01T00:00:05', '2026-12-01T09:30:00.25']
        .map(at)
        .map(shownDate),
    ).toEqual(['2026-12-01', '2026-12-01 09:00', '2026-12-01 00:00:05', '2026-12-01 09:30']);
  });

  it('is a share of the whole, exact also for amounts beyond what numbers hold', () => {
    expect([share(1n, 3n), share(0n, 0n), share(2n ** 62n, 2n ** 63n)]).toEqual(['33.33%', '0%', '50%']);
  });
});
