import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { interpolate } from '../../src/config/interpolate.ts';
import { describeOptions, type Option } from '../../src/config/option.ts';
import {
  assignmentText,
  formatIniValue,
  optionsTable,
  parseIni,
  sampleText,
  valueText,
} from '../../src/config/text.ts';
import { ANY_CHARACTER } from '../support/characters.ts';
import { configuration, effective, resolved, shown } from './helpers.ts';

const schema = z.object({
  limit: z.int().min(-1).default(-1).meta({ description: 'How long a lease may be.', unit: 'seconds' }),
  tries: z.int().optional().meta({ description: 'How often.' }),
  token: z.string().default('').meta({ description: 'What is sent | shown.', secret: true }),
  names: z.array(z.string()).default(['a', 'b']).meta({ description: 'Some names.' }),
  limits: z.record(z.string(), z.int()).default({ a: 1, b: 2 }).meta({ description: 'Some limits.' }),
  odd: z.string().default(' "$x" # ').meta({ description: 'Odd text.' }),
});

/** Every option of the package. */
async function allOptions(): Promise<Option[]> {
  const { settings } = await configuration('[enforcement]\n');
  return settings.map(({ option }) => option);
}

describe('a value as text', () => {
  it.each([
    [60, '60'],
    [true, 'true'],
    ['text', 'text'],
    [['a', 'b'], 'a,b'],
    [[], ''],
    [{ a: 1, b: 2 }, 'a:1,b:2'],
    [{}, ''],
    [undefined, ''],
    [null, ''],
  ])('%j is written as it is read', (value, text) => {
    expect(valueText(value)).toBe(text);
  });

  it.each([
    ['limit', 60, 'limit = 60'],
    ['token', '', 'token ='],
    ['tries', undefined, '# tries ='],
    ['odd', ' a', 'odd = " a"'],
    ['odd', '$x', 'odd = $$x'],
    ['odd', 'a\nb', 'odd = a\n    b'],
  ])('follows its name: %s = %j', (name, value, text) => {
    expect(assignmentText(name, value)).toBe(text);
  });

  it('is read back as the same value', async () => {
    const values = { limit: 60, token: ' #;"$y" ', names: ['c'], limits: { c: 3 }, odd: "'q'" };
    const lines = Object.entries(values).map(([name, value]) => assignmentText(name, value));
    const { settings, problems } = await resolved(schema, lines.join('\n'));
    expect(problems).toEqual([]);
    expect(Object.fromEntries(settings.map(({ option, value }) => [option.name, value]))).toEqual({
      ...values,
      tries: undefined,
    });
  });
});

describe('a sample', () => {
  it('has help, expected value and default of every option in comments', () => {
    expect(sampleText(describeOptions('s', schema))).toBe(`[s]

# How long a lease may be.
# Expected: a whole number of seconds or -1
# Default: -1
#limit = -1

# How often.
# Expected: a whole number
# Default: not set
#tries =

# What is sent | shown.
# Expected: text (a secret)
# Default: empty
#token =

# Some names.
# Expected: a list, with commas between its items
# Default: a,b
#names = a,b

# Some limits.
# Expected: name:value pairs with commas between them, each value a whole number
# Default: a:1,b:2
#limits = a:1,b:2

# Odd text.
# Expected: text
# Default: " "$$x" # "
#odd = " "$$x" # "
`);
  });

  it('of the package sets nothing, and without the comment signs the defaults', async () => {
    const options = await allOptions();
    const sample = sampleText(options);
    expect((await configuration(sample)).settings.every(({ origin }) => origin.kind === 'default')).toBe(
      true,
    );

    const uncommented = sample.replace(
      /^#(\w+ = .+|(?:\w+_filters|\w+_token|\w+_projects|filters_path) =)$/gm,
      '$1',
    );
    expect(uncommented).not.toBe(sample);
    const read = await configuration(uncommented);
    expect(read.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    for (const option of options) {
      expect(effective(read, option.name, option.section), option.name).toEqual(option.default);
    }
  });
});

describe('the table of the options', () => {
  it('has a row per option: name, expected value, default, meaning', () => {
    expect(optionsTable(describeOptions('s', schema))).toBe(`### [s]

| option | expected | default | meaning |
| --- | --- | --- | --- |
| \`limit\` | a whole number of seconds or -1 | -1 | How long a lease may be. |
| \`tries\` | a whole number | not set | How often. |
| \`token\` | text (a secret) | empty | What is sent \\| shown. |
| \`names\` | a list, with commas between its items | a,b | Some names. |
| \`limits\` | name:value pairs with commas between them, each value a whole number | a:1,b:2 | Some limits. |
| \`odd\` | text |  "$x" #  | Odd text. |
`);
  });

  it('has every option of the package, as the sample does, with help', async () => {
    const options = await allOptions();
    const table = optionsTable(options);
    const sample = sampleText(options);
    expect(options.length).toBeGreaterThan(20);
    for (const { name, help } of options) {
      expect(help, name).toMatch(/^[A-Z].*[.]$/);
      expect(table).toContain(`| \`${name}\` |`);
      expect(sample).toMatch(new RegExp(`^#${name} =`, 'm'));
    }
  });
});

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
  it('is literal: comments, other types and quotes that are no pair mean nothing', () => {
    for (const value of [
      ...['abc#def', 'abc;def;g', 'a # b', 'a ; b', 'a=b=c', 'a:b', '#', ';x', '100%', '\\#', 'a\\;b'],
      ...['π ≠ 3'],
      ...['true', 'false', 'null', '[1]', '{"a":1}', '"a":1', '60', '007', 'undefined', '__proto__'],
      ...[`"open`, `open"`, `"mixed'`, `a"b"c`, `"`, `'`],
    ]) {
      expect(valueIn(`k = ${value}`)).toBe(value);
    }
  });

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

  it('begins after the first delimiter, ":" or "="', () => {
    expect(valueIn('k: http://h:80/a?b=c')).toBe('http://h:80/a?b=c');
    expect(valueIn('k = a:b')).toBe('a:b');
    expect(valueIn('k:=b')).toBe('=b');
    expect(valueIn('k=:b')).toBe(':b');
  });

  it('may be empty', () => {
    expect(entries('[s]\na =\nb:\nc=""\n')).toEqual(['s.a = ', 's.b = ', 's.c = ']);
  });
});

describe('a continuation line', () => {
  it('is joined with a line break, without its indentation', () => {
    expect(entries('[s]\nk = a,\n  b,\n\tc\nj = d\n')).toEqual(['s.k = a,\nb,\nc', 's.j = d']);
  });

  it('may follow an empty first line, and contain anything', () => {
    expect(entries('[s]\nk =\n  x = y\n  [t]\n  "q"\n')).toEqual(['s.k = \nx = y\n[t]\n"q"']);
  });

  it('belongs to the value even when it looks like a comment', () => {
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

  it('begins with a blank or a tab, and no other space', () => {
    expect(entries('[s]\nk = a\n\u00a0j = b\n')).toEqual(['s.k = a', 's.j = b']);
  });
});

describe('a section', () => {
  it('has a name in any case', () => {
    expect(entries('[Enforcement]\na = 1\n[ENFORCEMENT]\nb = 2\n')).toEqual([
      'enforcement.a = 1',
      'enforcement.b = 2',
    ]);
  });

  it('keeps the case of option names', () => {
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

  it('is merged when it is repeated; the last value of a repeated option wins, with its line', () => {
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

describe('a name', () => {
  const strange = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype', '0'];

  it.each(strange)('may be %s, for a section and an option', (name) => {
    expect(entries(`[${name}]\n${name} = 1\n[s]\n${name} = 2\n`)).toEqual([
      `${name.toLowerCase()}.${name} = 1`,
      `s.${name} = 2`,
    ]);
    expect({}).not.toHaveProperty('1');
  });

  it('with brackets makes no list', () => {
    expect(entries('[s]\nk[] = 1\nk[] = 2\nk = 3\n')).toEqual(['s.k[] = 2', 's.k = 3']);
  });

  it('keeps its place, even when it is a number', () => {
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

  it('may lack the final newline', () => {
    expect(entries('[s]\na = 1')).toEqual(['s.a = 1']);
    expect(entries('[s]\na = 1\n  2')).toEqual(['s.a = 1\n2']);
  });

  it.each(['', '\n\n', '# only a comment', '[s]\n'])('may have no option: %j', (text) => {
    expect(entries(text)).toEqual([]);
  });
});

describe('a syntax error', () => {
  const HEADER = 'expected a section header such as "[enforcement]"';
  const ASSIGNMENT = 'expected "name = value", got a line without';
  it.each([
    ['a line without a delimiter', '[s]\nsEcReT\n', 2, `${ASSIGNMENT} "=" or ":"`],
    ['a line without a name', '[s]\n= sEcReT\n', 2, `${ASSIGNMENT} a name before "="`],
    ['a line without a name', '[s]\n: sEcReT\n', 2, `${ASSIGNMENT} a name before ":"`],
    ['an open header', '[sEcReT\n', 1, `${HEADER}, with nothing after it`],
    ['an empty header', '[]\n', 1, `${HEADER}, with nothing after it`],
    ['a comment after a header', '[s] # sEcReT\n', 1, `${HEADER}, with nothing after it`],
    ['an option before the first header', '\nsEcReT = sEcReT\n', 2, `${HEADER} before the first option`],
  ])('has file and line, and does not show the text: %s', (_, text, line, message) => {
    expect(errors(text)).toEqual([`blazar.conf:${line}: ${message}`]);
  });

  it('hides no other error, and the right lines are read', () => {
    const text = 'early = 1\n[s]\na = 1\nbroken\n = 2\n[open\n\n  indented\nb = 3\n';
    const { sections, problems } = parseIni(text, 'blazar.conf');
    expect(problems.map(({ origin }) => origin)).toEqual(
      [1, 4, 5, 6, 8].map((line) => ({ kind: 'file', file: 'blazar.conf', line })),
    );
    expect(problems.every(({ severity }) => severity === 'error')).toBe(true);
    expect(sections.get('s')?.get('a')).toEqual({ value: '1', line: 3 });
  });
});

describe('for any text', () => {
  const piece = fc.oneof(
    fc.constantFrom('\r\n', ...`[]=:#;"'\n\r \t\\$.\0`),
    fc.constantFrom('[s]\n', 'k = v\n', '__proto__', 'true', '\uFEFF', '\ud800'),
    fc.string({ unit: ANY_CHARACTER, maxLength: 5 }),
  );
  const text = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''));

  it('parsing does not throw, and every problem has a line of the file', () => {
    fc.assert(
      fc.property(text, (written) => {
        const lines = written.split(/\r\n|\r|\n/).length;
        for (const { origin, message } of parseIni(written, 'f').problems) {
          expect(origin).toMatchObject({ kind: 'file', file: 'f', line: expect.any(Number) });
          expect(origin?.kind === 'file' && origin.line >= 1 && origin.line <= lines).toBe(true);
          expect(message).not.toBe('');
        }
      }),
      { numRuns: 500 },
    );
  });

  const line = fc.string({ unit: ANY_CHARACTER, maxLength: 12 }).map((part) => part.replace(/[\r\n]/g, ''));
  const section = line.filter((name) => name !== '' && name === name.toLowerCase());
  const name = line
    .map((part) => part.replace(/[:=]/g, '').trim())
    .filter((part) => part !== '' && !/^[#;[]/.test(part));
  const continuation = line.map((part) => part.trim()).filter((part) => part !== '');
  // Lines after the first lose their surrounding spaces, and a blank one ends the value: the dialect has no words for them.
  const value = fc
    .tuple(
      fc.oneof(line, fc.constantFrom('"', '""', `'a'`, ' a ', '$', '$$', `\${x}`, '#', '[s]')),
      fc.array(continuation),
    )
    .map(([first, rest]) => [first, ...rest].join('\n'));
  const document = fc.dictionary(section, fc.dictionary(name, value, { noNullPrototype: true }));

  it('what is written with formatIniValue is read back the same', () => {
    fc.assert(
      fc.property(document, (sections) => {
        const written = Object.entries(sections)
          .map(([header, options]) => {
            const lines = Object.entries(options).map(([key, text]) => `${key} = ${formatIniValue(text)}`);
            return [`[${header}]`, ...lines].join('\n');
          })
          .join('\n');
        const read = parseIni(written, 'f');
        expect(read.problems).toEqual([]);
        for (const [header, options] of Object.entries(sections)) {
          for (const [key, text] of Object.entries(options)) {
            const found = read.sections.get(header)?.get(key)?.value ?? '';
            expect(interpolate(found, header, () => undefined)).toEqual({ text, secret: false });
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
