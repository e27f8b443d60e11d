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

  it('takes no name for markup', () => {
    const [picture] = picturesOf(rowAt(1_000_000, 1.1, '<b> & co'));
    expect(picture?.svg).toContain('&lt;b&gt; &amp; co');
    expect(picture?.svg).not.toContain('<b>');
  });
});
