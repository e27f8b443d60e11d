import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toInstant } from '../../../src/lease/dates.ts';
import { share, shownDate, timeScale } from '../../../src/server/console/time-scale.ts';

const at = (text: string) => toInstant(text) ?? 0n;
const span = (start: string, end: string) => ({ start: at(start), end: at(end) });
const NOW = at('2026-11-21T12:00:00Z');
const labels = (...spans: [string, string][]) =>
  timeScale(
    NOW,
    spans.map((one) => span(...one)),
  ).ticks.map(({ label }) => label);

describe('the time scale', () => {
  it.for([
    ['hours', [], ['21 Nov', '06:00', '12:00', '18:00', '22 Nov']],
    ['days', [['2026-11-20', '2026-11-24']], ['20 Nov', '21 Nov', '22 Nov', '23 Nov', '24 Nov']],
    ['weeks', [['2026-11-01', '2026-12-05']], ['2 Nov', '9 Nov', '16 Nov', '23 Nov', '30 Nov']],
    ['months', [['2026-09-15', '2027-01-15']], ['Oct 2026', 'Nov 2026', 'Dec 2026', 'Jan 2027']],
    ['half years', [['2025-11-01', '2027-12-01']], ['Jan 2026', 'Jul 2026', 'Jan 2027', 'Jul 2027']],
  ] as [string, [string, string][], string[]][])('has ticks of %s', ([, spans, expected]) => {
    expect(labels(...spans)).toEqual(expected);
  });

  it('keeps everything inside, in order and wide enough to be seen, whatever the dates are', () => {
    const day = fc.bigInt({ min: at('0101-01-01'), max: at('9998-01-01') });
    const some = fc.array(
      fc.tuple(day, fc.bigInt({ min: 1n, max: 10n ** 15n })).map(([start, length]) => ({
        ...{ start, end: start + length },
      })),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(some, (spans) => {
        const scale = timeScale(NOW, spans);
        const now = Number.parseFloat(scale.place(NOW));
        expect(now).toBeGreaterThan(0);
        expect(now).toBeLessThan(100);
        expect(scale.ticks.length).toBeLessThanOrEqual(9);
        for (const { start, end } of spans) {
          const { x, width } = scale.bar(start, end);
          const [left, right] = [Number.parseFloat(x), Number.parseFloat(x) + Number.parseFloat(width)];
          expect(left).toBeGreaterThanOrEqual(0);
          expect(right).toBeLessThanOrEqual(100.01);
          expect(right - left).toBeGreaterThanOrEqual(0.69);
          if (start > NOW) {
            expect(right).toBeGreaterThan(now);
          } else if (end < NOW) {
            expect(left).toBeLessThan(now);
          }
        }
      }),
    );
  });

  it('is not stretched by a date that is far away', () => {
    const near = span('2026-11-21', '2026-12-21');
    const scale = timeScale(NOW, [near, span('2026-12-01', '9998-01-01')]);
    expect(Number.parseFloat(scale.bar(near.start, near.end).width)).toBeGreaterThan(5);
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
