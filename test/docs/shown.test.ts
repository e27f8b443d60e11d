import { describe, expect, it } from 'vitest';
import { commands, matchesShown } from './shown.ts';

describe('matchesShown', () => {
  it('takes what is shown literally, but for empty lines around it and spaces at line ends', () => {
    expect(matchesShown('a.c (1)  \n\n', 'a.c (1)\n')).toBe(true);
    expect(matchesShown('abc (1)', 'a.c (1)')).toBe(false);
    expect(matchesShown('a\nb', 'a')).toBe(false);
    expect(matchesShown('a', 'a\nb')).toBe(false);
    expect(matchesShown('a', '')).toBe(false);
    expect(matchesShown('', '')).toBe(true);
  });

  it('takes … for anything in a line', () => {
    expect(matchesShown('took 12 ms', 'took … ms')).toBe(true);
    expect(matchesShown('took 12\n ms', 'took … ms')).toBe(false);
  });

  it('takes … on a line of its own for any number of lines', () => {
    expect(matchesShown('a\nb\nc\nd', 'a\n…\nd')).toBe(true);
    expect(matchesShown('a\nd', 'a\n…\nd')).toBe(true);
    expect(matchesShown('a\nb\nc', '…')).toBe(true);
    expect(matchesShown('a\nb\nc', 'a\n…\nd')).toBe(false);
  });
});

describe('commands', () => {
  it('tells commands, over several lines, from what they print', () => {
    expect(commands('$ a \\\n  b\none\ntwo\n$ c\n')).toEqual([
      { command: 'a \\\n  b', shown: 'one\ntwo\n' },
      { command: 'c', shown: '\n' },
    ]);
  });
});
