import { describe, expect, it } from 'vitest';
import { Tally } from '../../src/decisions/statistics.ts';

describe('Tally', () => {
  it('lists first who was refused most, then who has asked most; all others together', () => {
    const tally = new Tally<string>();
    const add = (name: string, decisions: number, refused: number) => {
      for (let count = 0; count < decisions; count += 1) {
        tally.add(name, count < refused);
      }
    };
    add('busy', 9, 0);
    add('lucky', 2, 0);
    add('refused', 3, 3);
    add('half', 4, 2);
    expect(tally.top(2)).toEqual({
      rows: [
        { name: 'refused', decisions: 3, refused: 3, users: [] },
        { name: 'half', decisions: 4, refused: 2, users: [] },
      ],
      others: { decisions: 11, refused: 0 },
    });
    expect(tally.top(10)).toMatchObject({
      rows: [{ name: 'refused' }, { name: 'half' }, { name: 'busy' }, { name: 'lucky' }],
      others: { decisions: 0, refused: 0 },
    });
    expect(tally.isCut).toBe(false);
  });

  it('tells names of several parts apart', () => {
    const tally = new Tally<readonly (string | null)[]>();
    for (const name of [
      ['a', 'b,c'],
      ['a,b', 'c'],
      ['a', null],
      ['a', 'null'],
      ['a', 'b,c'],
    ]) {
      tally.add(name, false);
    }
    expect(tally.top(10).rows.map(({ name, decisions }) => [name, decisions])).toEqual([
      [['a', 'b,c'], 2],
      [['a,b', 'c'], 1],
      [['a', null], 1],
      [['a', 'null'], 1],
    ]);
  });

  it('counts the users of each name, of ten at most', () => {
    const tally = new Tally<string>();
    for (let index = 0; index < 12; index += 1) {
      tally.add('busy', true, `u${index}`);
    }
    tally.add('busy', true, 'u3');
    tally.add('busy', true, null);
    const { rows } = tally.top(1);
    expect(rows[0]?.decisions).toBe(14);
    expect(rows[0]?.users).toHaveLength(10);
    expect(rows[0]?.users[0]).toEqual({ user_id: 'u3', decisions: 2 });
  });

  it('is not led astray by names that objects have', () => {
    const tally = new Tally<string>();
    for (const name of ['__proto__', 'constructor', '', 'toString']) {
      tally.add(name, true);
    }
    expect(tally.top(10).rows).toHaveLength(4);
  });

  it('counts no more than 10,000 names each by its own, and says that there were more', () => {
    const tally = new Tally<string>();
    for (let name = 0; name < 10_000; name += 1) {
      tally.add(String(name), false);
    }
    expect(tally.isCut).toBe(false);
    for (let name = 0; name < 20_000; name += 1) {
      tally.add(String(name), true);
    }
    expect(tally.isCut).toBe(true);
    const { rows, others } = tally.top(Number.POSITIVE_INFINITY);
    expect(rows).toHaveLength(10_000);
    expect(rows.every(({ decisions, refused }) => decisions === 2 && refused === 1)).toBe(true);
    expect(others).toEqual({ decisions: 10_000, refused: 10_000 });
  });
});
