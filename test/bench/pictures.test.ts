import { describe, expect, it } from 'vitest';
import { isMeasured, type Row } from '../../bench/performance/measurements.ts';
import { pictures } from '../../bench/performance/pictures.ts';
import { ROW, TOPIC } from './measurements.ts';

function rowAt(size: number, ratio: number, line = 'check, SQLite'): Row {
  const growth = { picture: 'ledger', line, from: 1000, size };
  return { ...ROW, ratio, target: { atMost: 1.3 }, growth };
}

const picturesOf = (...rows: Row[]) => pictures({ topics: { ledger: { ...TOPIC, rows } } });

describe('a picture of growth', () => {
  it('is drawn for rows that say how something grows, and for no others', () => {
    expect(picturesOf(ROW)).toEqual([]);
    expect(picturesOf(ROW, rowAt(1_000_000, 1.1)).map(({ file }) => file)).toEqual([
      'performance-ledger.svg',
    ]);
    expect(isMeasured({ date: '', notMeasured: '' })).toBe(false);
    expect(pictures({ topics: { ledger: { date: '', notMeasured: 'it failed' } } })).toEqual([]);
  });

  it('says in words what it shows, also to those who do not see it', () => {
    const [picture] = picturesOf(rowAt(10_000_000, 1.21), rowAt(1_000_000, 1.1));
    const alt =
      'A check, by leases on record. check, SQLite: 1.00 at 1,000, 1.10 at 1,000,000, 1.21 at 10,000,000.';
    expect(picture?.alt).toBe(alt);
    expect(picture?.svg).toContain(`<desc>${alt}</desc>`);
    expect(picture?.svg).toContain('role="img"');
  });

  it('draws sizes by powers of ten, and larger ratios higher', () => {
    const [picture] = picturesOf(rowAt(100_000, 1.1), rowAt(10_000_000, 1.4));
    const [points = ''] = /(?<=<polyline [^>]*points=")[^"]+/.exec(picture?.svg ?? '') ?? [];
    const [[x1 = 0, y1 = 0], [x2 = 0, y2 = 0], [x3 = 0, y3 = 0]] = points
      .split(' ')
      .map((point) => point.split(',').map(Number)) as [number[], number[], number[]];
    // Two powers of ten each.
    expect(x2 - x1).toBeCloseTo(x3 - x2, 0);
    expect(x2).toBeGreaterThan(x1);
    expect(y2).toBeLessThan(y1);
    expect(y3).toBeLessThan(y2);
  });

  it('takes no name for markup', () => {
    const [picture] = picturesOf(rowAt(1_000_000, 1.1, '<b> & co'));
    expect(picture?.svg).toContain('&lt;b&gt; &amp; co');
    expect(picture?.svg).not.toContain('<b>');
  });
});
