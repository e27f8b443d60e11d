import { describe, expect, it } from 'vitest';
import { Shares } from '../../../src/server/users/shares.ts';

describe('Shares', () => {
  it('asks nobody to give way while there is room, then whoever has most', () => {
    const shares = new Shares<number>(4);
    for (const item of [1, 2, 3]) {
      shares.add('much', item);
    }
    expect(shares.givesWay('little')).toBeUndefined();
    shares.add('little', 4);
    expect(shares.givesWay('new')).toBe('much');
    expect(shares.givesWay('much')).toBe('much');
    expect(shares.givesWay('little')).toBe('much');
    shares.delete('much', 3);
    shares.add('little', 5);
    expect(shares.givesWay('little'), 'with one more it would have most').toBe('little');
    expect(shares.givesWay('new')).toBe('much');
  });

  it('asks nobody for the only thing', () => {
    const shares = new Shares<number>(2);
    shares.add('one', 1);
    shares.add('other', 2);
    expect(shares.givesWay('new')).toBe('new');
    expect(shares.of('new')).toEqual([]);
  });

  it('counts what is added or deleted twice once', () => {
    const shares = new Shares<number>(1);
    shares.add('one', 1);
    shares.add('one', 1);
    shares.delete('one', 1);
    shares.delete('one', 1);
    expect(shares.givesWay('new')).toBeUndefined();
    shares.add('one', 1);
    expect(shares.givesWay('new')).toBe('new');
  });
});
