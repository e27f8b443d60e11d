import { describe, expect, it } from 'vitest';
import { parseIni } from '../../src/config/ini.ts';
import { shown } from './helpers.ts';

/** `section.name = value` for each option, in order. */
function entries(text: string): string[] {
  const { sections, problems } = parseIni(text, 'blazar.conf');
  expect(problems).toEqual([]);
  return [...sections].flatMap(([section, options]) =>
    [...options].map(([name, { value }]) => `${section}.${name} = ${value}`),
  );
}

/** The one value of a file with this line. */
function valueIn(line: string): string | undefined {
  const [entry] = entries(`[s]\n${line}\n`);
  return entry?.replace(/^s\.[^=]* = /, '');
}

function errors(text: string): string[] {
  return shown(parseIni(text, 'blazar.conf').problems);
}

describe('a value', () => {
  it.each([
    'abc#def',
    'abc;def;g',
    'a # b',
    'a ; b',
    'a=b=c',
    'a:b',
    '#',
    ';x',
    '100%',
    '\\#',
    'a\\;b',
    'π ≠ 3',
  ])('keeps %s as it stands', (value) => {
    expect(valueIn(`k = ${value}`)).toBe(value);
  });

  it.each(['true', 'false', 'null', '[1]', '{"a":1}', '"a":1', '60', '007', 'undefined', '__proto__'])(
    'stays the text %s',
    (value) => {
      expect(valueIn(`k = ${value}`)).toBe(value);
    },
  );

  it.each([
    ['"quoted value"', 'quoted value'],
    ["'quoted value'", 'quoted value'],
    ['"  kept  "', '  kept  '],
    ['""', ''],
    [`"'both'"`, `'both'`],
    ['""twice""', '"twice"'],
    ['"a\\nb"', 'a\\nb'],
    ['"a" and "b"', 'a" and "b'],
  ])('loses one pair of surrounding quotes: %s', (written, value) => {
    expect(valueIn(`k = ${written}`)).toBe(value);
  });

  it.each([`"open`, `open"`, `"mixed'`, `a"b"c`, `"`, `'`])('keeps quotes that are no pair: %s', (value) => {
    expect(valueIn(`k = ${value}`)).toBe(value);
  });

  it('begins behind the delimiter that comes first, ":" or "="', () => {
    expect(valueIn('k: http://h:80/a?b=c')).toBe('http://h:80/a?b=c');
    expect(valueIn('k = a:b')).toBe('a:b');
    expect(valueIn('k:=b')).toBe('=b');
    expect(valueIn('k=:b')).toBe(':b');
  });

  it('loses the spaces around it and around its name', () => {
    expect(entries('[s]\nk\t =  v \t \nj=\t\n')).toEqual(['s.k = v', 's.j = ']);
  });

  it('may be empty', () => {
    expect(entries('[s]\na =\nb:\nc=""\n')).toEqual(['s.a = ', 's.b = ', 's.c = ']);
  });
});

describe('a continuation line', () => {
  it('is joined with a line break and without its indentation', () => {
    expect(entries('[s]\nk = a,\n  b,\n\tc\nj = d\n')).toEqual(['s.k = a,\nb,\nc', 's.j = d']);
  });

  it('may follow an empty first line, and looks like anything', () => {
    expect(entries('[s]\nk =\n  x = y\n  [t]\n  "q"\n')).toEqual(['s.k = \nx = y\n[t]\n"q"']);
  });

  it('is a part of the value also when it looks like a comment', () => {
    expect(entries('[s]\nk = a\n  # b\n  ; c\n')).toEqual(['s.k = a\n# b\n; c']);
  });

  it.each([
    ['a blank line', ''],
    ['a line of spaces', '   '],
    ['a comment', '# c'],
    ['a comment with ";"', '; c'],
    ['a section header', '[t]'],
  ])('cannot follow %s, which ends the value', (_, line) => {
    const { sections, problems } = parseIni(`[s]\nk = a\n${line}\n  sEcReT\n`, 'blazar.conf');
    expect(sections.get('s')?.get('k')?.value).toBe('a');
    expect(shown(problems)).toEqual([
      'blazar.conf:4: an indented line continues the option above it, and there is none; remove the indentation',
    ]);
  });

  it('cannot be the first line of a file', () => {
    expect(errors('  [enforcement]\n')).toEqual([
      'blazar.conf:1: an indented line continues the option above it, and there is none; remove the indentation',
    ]);
  });

  it('does not begin with a space that is neither blank nor tab', () => {
    expect(entries('[s]\nk = a\n\u00a0j = b\n')).toEqual(['s.k = a', 's.j = b']);
  });
});

describe('a section', () => {
  it('is found whatever the case of its name', () => {
    expect(entries('[Enforcement]\na = 1\n[ENFORCEMENT]\nb = 2\n')).toEqual([
      'enforcement.a = 1',
      'enforcement.b = 2',
    ]);
  });

  it('keeps the case of the names in it', () => {
    expect(entries('[s]\nKey = 1\nkey = 2\n')).toEqual(['s.Key = 1', 's.key = 2']);
  });

  it('is not split at dots', () => {
    expect(entries('[a.b]\nk = 1\n[a]\nb = 2\n[c\\.d]\ne = 3\n')).toEqual([
      'a.b.k = 1',
      'a.b = 2',
      'c\\.d.e = 3',
    ]);
    expect([...parseIni('[a.b]\nk = 1\n', 'f').sections.keys()]).toEqual(['a.b']);
  });

  it('merges when it is repeated, and the last of a repeated name wins, with its line', () => {
    const { sections } = parseIni('[s]\na = 1\nb = 1\n[t]\na = 2\n[S]\nb = 3\nb = 4\nc = 5\n', 'f');
    expect(Object.fromEntries(sections.get('s') ?? [])).toEqual({
      a: { value: '1', line: 2 },
      b: { value: '4', line: 8 },
      c: { value: '5', line: 9 },
    });
    expect(sections.get('t')?.get('a')).toEqual({ value: '2', line: 5 });
  });

  it.each(['physical:host', 'a]b', 'a = b', '#x', '"q"', ' spaced ', '1'])('may be called %s', (name) => {
    expect(entries(`[${name}]\nk = v\n`)).toEqual([`${name}.k = v`]);
  });
});

describe('names that mean something to JavaScript', () => {
  const strange = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype', '0'];

  it.each(strange)('%s is a plain name of a section and of an option', (name) => {
    expect(entries(`[${name}]\n${name} = 1\n[s]\n${name} = 2\n`)).toEqual([
      `${name.toLowerCase()}.${name} = 1`,
      `s.${name} = 2`,
    ]);
    expect({}).not.toHaveProperty('1');
  });

  it('a name in brackets makes no list', () => {
    expect(entries('[s]\nk[] = 1\nk[] = 2\nk = 3\n')).toEqual(['s.k[] = 2', 's.k = 3']);
  });

  it('keeps the order in which names were written, numbers among them', () => {
    expect(entries('[b]\n2 = x\n1 = y\n[1]\na = z\n')).toEqual(['b.2 = x', 'b.1 = y', '1.a = z']);
  });
});

describe('a file', () => {
  it.each([
    ['\n', 'LF'],
    ['\r\n', 'CRLF'],
    ['\r', 'CR'],
  ])('may end its lines with %j (%s)', (end) => {
    const text = ['[s]', 'a = 1', '  2', '', '# c', 'b = "x"', ''].join(end);
    const { sections, problems } = parseIni(text, 'f');
    expect(problems).toEqual([]);
    expect(Object.fromEntries(sections.get('s') ?? [])).toEqual({
      a: { value: '1\n2', line: 2 },
      b: { value: 'x', line: 6 },
    });
  });

  it('may begin with a byte order mark', () => {
    expect(entries('\uFEFF[s]\na = 1\n')).toEqual(['s.a = 1']);
  });

  it('may lack the newline at its end', () => {
    expect(entries('[s]\na = 1')).toEqual(['s.a = 1']);
    expect(entries('[s]\na = 1\n  2')).toEqual(['s.a = 1\n2']);
  });

  it.each(['', '\n\n', '# only a comment', '[s]\n'])('may hold no option: %j', (text) => {
    expect(entries(text)).toEqual([]);
  });
});

describe('a syntax error', () => {
  it.each([
    [
      'a line without a delimiter',
      '[s]\nsEcReT\n',
      2,
      'expected "name = value", got a line without "=" or ":"',
    ],
    [
      'a line without a name',
      '[s]\n= sEcReT\n',
      2,
      'expected "name = value", got a line without a name before "="',
    ],
    [
      'a line without a name',
      '[s]\n: sEcReT\n',
      2,
      'expected "name = value", got a line without a name before ":"',
    ],
    [
      'an open header',
      '[sEcReT\n',
      1,
      'expected a section header such as "[enforcement]", with nothing after it',
    ],
    [
      'an empty header',
      '[]\n',
      1,
      'expected a section header such as "[enforcement]", with nothing after it',
    ],
    [
      'a comment behind a header',
      '[s] # sEcReT\n',
      1,
      'expected a section header such as "[enforcement]", with nothing after it',
    ],
    [
      'an option before the first header',
      '\nsEcReT = sEcReT\n',
      2,
      'expected a section header such as "[enforcement]" before the first option',
    ],
  ])('names file and line of %s, and repeats nothing of it', (_, text, line, message) => {
    expect(errors(text)).toEqual([`blazar.conf:${line}: ${message}`]);
  });

  it('keeps no other from being reported, nor the right lines from being read', () => {
    const text = 'early = 1\n[s]\na = 1\nbroken\n = 2\n[open\n\n  indented\nb = 3\n';
    const { sections, problems } = parseIni(text, 'blazar.conf');
    expect(problems.map(({ origin }) => origin)).toEqual(
      [1, 4, 5, 6, 8].map((line) => ({ kind: 'file', file: 'blazar.conf', line })),
    );
    expect(problems.every(({ severity }) => severity === 'error')).toBe(true);
    expect(sections.get('s')?.get('a')).toEqual({ value: '1', line: 3 });
  });
});
