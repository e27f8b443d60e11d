import { describe, expect, it } from 'vitest';
import { isScalar, parseDocument } from 'yaml';
import { dialect, Special } from '../../../src/base/yaml/dialect.ts';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { YamlError } from '../../../src/base/yaml/tree.ts';

function scalar(text: string): unknown {
  const { contents, errors } = parseDocument(text, dialect);
  expect(errors).toEqual([]);
  return isScalar(contents) ? contents.value : contents;
}

/** Each of the texts with the value. */
const all = <Value>(texts: string, value: Value) => texts.split(' ').map((text) => [text, value] as const);

describe('a scalar without quotes', () => {
  it.each<readonly [string, unknown]>([
    ...all('yes Yes YES on On ON true True TRUE', true),
    ...all('no No NO off Off OFF false False FALSE', false),
    ...all('0 -0', 0),
    ...Object.entries({ '+12': 12, '012': 10, '-017': -15, '0_7': 7, '1_000': 1000, '0x1F': 31, '0b101': 5 }),
    ...Object.entries({ '1:30': 90, '-1:30': -90, '190:20:30': 685230, '9007199254740993': 2n ** 53n + 1n }),
    ['-123456789012345678901234567890', -123456789012345678901234567890n],
    ...Object.entries({ '1.0': 1, '.5': 0.5, '1.': 1, '1.5e+3': 1500, '1.5E-3': 0.0015, '-1.5': -1.5 }),
    ...Object.entries({ '-0.0': -0, '1_0.2_5': 10.25, '190:20:30.15': 685230.15, '.NaN': Number.NaN }),
    ...Object.entries({ '.inf': Number.POSITIVE_INFINITY, '-.INF': Number.NEGATIVE_INFINITY }),
  ])('%s is read as PyYAML reads it: %s', (text, value) => {
    expect(scalar(text)).toBe(value);
  });

  it.each(['2026-11-21', '2026-1-1 1:02:03', '2026-01-01T10:00:00.5Z', '2026-01-01 10:00:00 +01:30'])(
    '%s is a date or time, kept as it is written',
    (text) => {
      expect(scalar(text)).toEqual(new Special('moment', text));
      expect(YamlDocument.parse(text).value).toBe(text);
    },
  );

  it.each([
    ...['y', 'n', 'Y', 'yEs', 'nuLL', '1e3', '1.5e3', '08', '0o14', '0X1F', '1:60', '.nAn', '.iNF', '+.nan'],
    ...['.', '2026-1-1', '10:00:00x', 'Infinity', '._1'],
  ])('%s is a text', (text) => {
    expect(scalar(text)).toBe(text);
  });

  it.each([
    '2026-13-01',
    '2026-00-01',
    '2026-02-29',
    '2100-02-29',
    '2026-04-31',
    '2026-01-00',
    '0000-01-01',
    '2026-1-1 24:00:00',
    '2026-1-1 10:60:00',
    '2026-1-1 23:59:60',
    '2026-1-1 10:00:00 +24:00',
    '2026-01-01T10:00:00-23:60',
    'a: 2026-13-01',
    '{a: [2026-13-01]}',
  ])('%s is refused, as by PyYAML: there is no such date', (text) => {
    expect(() => YamlDocument.parse(text)).toThrow(/a date that does not exist/);
  });

  it.each(['2024-02-29', '2000-02-29', '9999-12-31', '2026-1-1 23:59:59.999 -23:59', '2026-1-1 10:00:00+9'])(
    '%s is a symbol where types are asked for, and no text',
    (text) => {
      const typed = YamlDocument.parse(`a: [${text}, '${text}']`).typed as { a: [symbol, string] };
      expect(typed).toEqual({ a: [expect.any(Symbol), text] });
      expect(typed.a[0].description).toBe(text);
    },
  );

  it.each(['=', 'a: =', '0b_', '0x_', `9${'0'.repeat(4300)}`, `1${':1'.repeat(3000)}`])(
    '%.12s is refused, as by PyYAML',
    (text) => {
      expect(() => YamlDocument.parse(text)).toThrow(YamlError);
    },
  );
});

describe('a number from code', () => {
  it.each([
    [1, '1'],
    [-0, '-0.0'],
    [0.1, '0.1'],
    [1.5e-7, '1.5e-7'],
    [5e-324, '5.0e-324'],
    [2 ** 53, '9007199254740992.0'],
    [123456789012345678901234567890n, '123456789012345678901234567890'],
    [Number.NaN, '.nan'],
    [Number.POSITIVE_INFINITY, '.inf'],
    [Number.NEGATIVE_INFINITY, '-.inf'],
  ])('%d is written as PyYAML reads it: %s', (value, text) => {
    const document = YamlDocument.from([value]);
    expect(document.toString()).toBe(`- ${text}\n`);
    expect(document.value).toEqual([value]);
  });
});

describe('a text from code', () => {
  it.each([
    ['plain words/and-more', 'plain words/and-more'],
    ['yes', '"yes"'],
    ['2026-11-21', '"2026-11-21"'],
    ['=', '"="'],
    ['<<', '"<<"'],
    ['', '""'],
    ['a: b', '"a: b"'],
    ['a\u0085b', '"a\\u0085b"'],
    ['\ud800', '"\\ud800"'],
    ['a\ufeff', '"a\\ufeff"'],
    ['é😀', '"é😀"'],
    ['echo a\necho b\n', '|\n  echo a\n  echo b'],
    ['a\u2029\nb', '"a\\u2029\\nb"'],
  ])('%j is written as %s', (value, text) => {
    const document = YamlDocument.from([value]);
    expect(document.toString()).toBe(`- ${text}\n`);
    expect(document.value).toEqual([value]);
  });
});
