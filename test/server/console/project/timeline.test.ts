import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatInstant, toInstant } from '../../../../src/index.ts';
import {
  MOVES,
  moved,
  timeWindow,
  windowParameters,
} from '../../../../src/server/console/project/timeline.tsx';

const NOW = toInstant('2026-11-22T12:00:00Z') ?? 0n;
const DAY = 86_400_000_000n;
const read = (query: Record<string, string>) => timeWindow(new URLSearchParams(query), NOW);
const texts = (window: { from: bigint; until: bigint }) => [
  formatInstant(window.from),
  formatInstant(window.until),
];

describe('the window of time of a page', () => {
  it('is a month before now and two after it, unless the address says another', () => {
    expect(texts(read({}))).toEqual(['2026-10-23T12:00:00Z', '2027-01-21T12:00:00Z']);
    expect(texts(read({ from: '2026-12-01', until: '2026-12-08' }))).toEqual([
      '2026-12-01T00:00:00Z',
      '2026-12-08T00:00:00Z',
    ]);
  });

  it('is the usual one, with a sentence, for what is no date or no time', () => {
    for (const query of [
      { from: 'x' },
      { until: 'y'.repeat(5000) },
      { from: '2026-12-02', until: '2026-12-01' },
    ]) {
      const { mistake, ...window } = read(query as Record<string, string>);
      expect(mistake).toMatch(/^Expected/);
      expect(texts(window)).toEqual(texts(read({})));
    }
  });

  it('moves by half of its length, and zooms around its middle', () => {
    const window = read({ from: '2026-12-01', until: '2026-12-09' });
    expect(texts(moved(window, 'earlier'))).toEqual(['2026-11-27T00:00:00Z', '2026-12-05T00:00:00Z']);
    expect(texts(moved(window, 'later'))).toEqual(['2026-12-05T00:00:00Z', '2026-12-13T00:00:00Z']);
    expect(texts(moved(window, 'wider'))).toEqual(['2026-11-27T00:00:00Z', '2026-12-13T00:00:00Z']);
    expect(texts(moved(window, 'narrower'))).toEqual(['2026-12-03T00:00:00Z', '2026-12-07T00:00:00Z']);
  });

  it('stays within its bounds, whatever is asked and however often it is moved', () => {
    const date = fc.constantFrom(
      '1000-01-01',
      '1970-01-01',
      '2026-12-01',
      '2026-12-01T00:00:01',
      '9999-12-31',
    );
    fc.assert(
      fc.property(
        date,
        date,
        fc.array(fc.constantFrom(...MOVES), { maxLength: 40 }),
        (from, until, moves) => {
          const window = moves.reduce(moved, read({ from, until }) as { from: bigint; until: bigint });
          const length = window.until - window.from;
          expect(length >= DAY / 4n && length <= 400n * DAY).toBe(true);
          expect(window.from >= 0n).toBe(true);
          for (const text of Object.values(windowParameters(window))) {
            expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
          }
        },
      ),
    );
  });
});
