import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expandHome, readDotlist } from '../../src/config/dotlist.ts';

/** Path and value of each pair. */
function pairs(...texts: string[]): unknown {
  const dotlist = readDotlist(texts);
  expect(dotlist).toMatchObject({ problems: [] });
  return 'pairs' in dotlist ? dotlist.pairs.map(({ path, value }) => [path, value.value]) : dotlist;
}

function problems(...texts: string[]): readonly string[] {
  const dotlist = readDotlist(texts);
  return 'problems' in dotlist ? dotlist.problems : [];
}

it.each([
  ['a=1', ['a'], 1],
  ['a.b=c=d', ['a', 'b'], 'c=d'],
  ['a.b=1,c.d=2', ['a', 'b'], '1,c.d=2'],
  ['a={b: 1, c: yes}', ['a'], { b: 1, c: true }],
  ['a=null', ['a'], null],
  ["a='600'", ['a'], '600'],
  [' a . b =1', ['a', 'b'], 1],
  ['a=012', ['a'], 10],
  ['a= # nothing', ['a'], null],
  ['__proto__.x=1', ['__proto__', 'x'], 1],
  ['a=~/x', ['a'], '~/x'],
])('a pair is split at the first "=" and read as YAML: %s', (text, path, value) => {
  expect(pairs(text)).toEqual([[path, value]]);
});

describe('a mistake', () => {
  it.each<[string, string[]]>([
    [
      'expected key=value or a file that exists, got "TEXT"',
      ['nothing', '/no/such.yaml', '~/no-such.yaml', ''],
    ],
    ['expected key=value or a file that exists, got "a"', ['a: hidden']],
    ['expected key=value, got nothing before "="', ['=hidden', '  = hidden']],
    ['expected names with one dot between them, got "a..b"', ['a..b=hidden']],
    ['expected names with one dot between them, got "a."', ['a. =hidden']],
    [`expected a value after "a=", got none; write '' or null`, ['a=', 'a=  ']],
    ['the value of a is not YAML (missing char); put it in quotes', ['a=[hidden']],
    ['the value of a is not YAML (an alias has no anchor before it); put it in quotes', ['a=*hidden']],
  ])('is reported: %s', (problem, texts) => {
    for (const text of texts) {
      expect(problems(text)).toEqual([`--config: ${problem.replace('TEXT', text)}`]);
    }
  });

  it.each([
    ...['token: hidden', 'token hidden', 'x"hidden', 'a=[hidden', 'a={hidden: hidden: x}', 'a="hidden'],
    ...['a=\u0007hidden', 'a=!hidden x', '{hidden}'],
  ])('never shows a value: %j', (text) => {
    expect(problems(text)).toHaveLength(1);
    expect(problems(text).join()).not.toContain('hidden');
  });
});

describe('a file', () => {
  let folder: string;
  let file: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'dotlist-'));
    file = join(folder, 'a=b.yaml');
    writeFileSync(file, 'a: 1\n');
    mkdirSync(join(folder, 'c=d'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is the only value, whatever its name', () => {
    expect(readDotlist([file])).toEqual({ file });
  });

  it('may be below ~', () => {
    expect(readDotlist(['~/a=b.yaml'], folder)).toEqual({ file });
  });

  it.each([['c=1'], ['second.yaml']])('must be the only value: not with %s', (second) => {
    expect(readDotlist([file, second])).toEqual({
      pairs: [],
      problems: [`--config: ${file} is a file, and a file must be the only --config`],
    });
    expect(readDotlist([file, file])).toMatchObject({ pairs: [] });
  });

  it.each([
    ['~', '/home/me'],
    ['~/x', '/home/me/x'],
    ['~other/x', '~other/x'],
    ['x/~', 'x/~'],
    ['/x', '/x'],
  ])('has its home folder expanded: %s is %s', (path, expanded) => {
    expect(expandHome(path, '/home/me')).toBe(expanded);
  });
});
