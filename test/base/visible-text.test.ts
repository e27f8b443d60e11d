import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  nameMistake,
  onOneLine,
  visibleJson,
  visibleLines,
  visibleText,
  visibleValue,
  visibleXml,
} from '../../src/base/visible-text.ts';

const ESCAPED: readonly (readonly [name: string, text: string, shown: string])[] = [
  ['an escape sequence', '\u001b[2J', '\\u001b[2J'],
  ['C1', 'a\u009b31m', 'a\\u009b31m'],
  ['DEL', '\u007f', '\\u007f'],
  ['a bidi override', 'a\u202eb', 'a\\u202eb'],
  ['a bidi isolate', '\u2066b\u2069', '\\u2066b\\u2069'],
  ['marks of direction', '\u200e\u200f\u061c', '\\u200e\\u200f\\u061c'],
  ['a zero width space', 'a\u200bb\ufeff', 'a\\u200bb\\ufeff'],
  ['tags', '\u{e0041}\u{e007f}', '\\udb40\\udc41\\udb40\\udc7f'],
  ['half a pair', 'a\ud800b\udc00', 'a\\ud800b\\udc00'],
];

describe('what is not seen', () => {
  it.each(ESCAPED)('is escaped: %s', (_name, text, shown) => {
    expect(visibleText(text)).toBe(shown);
    expect(visibleLines(text)).toBe(shown);
    expect(onOneLine(text)).toBe(shown);
  });

  it('is a blank in place of line breaks, where there is one line', () => {
    expect(onOneLine('a\r\n\tb\u2028c\u0085d')).toBe('a b c d');
    expect(visibleLines('a\n\tb\r\u2028')).toBe('a\n\tb\\u000d\\u2028');
    expect(visibleText('a\nb')).toBe('a\\u000ab');
  });

  it('is escaped in names too', () => {
    const value = JSON.parse('{"__proto__":{"a\\u202e":["\\u009b",1,null,true]}}');
    expect(JSON.stringify(visibleValue(value))).toBe(
      '{"__proto__":{"a\\\\u202e":["\\\\u009b",1,null,true]}}',
    );
  });

  it('is a reference in XML', () => {
    expect(visibleXml('<a>\u009b\u202e\n</a>')).toBe('<a>&#x9b;&#x202e;\n</a>');
  });
});

it('every other letter is left as it is', () => {
  const text = 'Zürich, Αθήνα, 東京, القاهرة, 👍🏽 "\\';
  for (const show of [visibleText, visibleLines, onOneLine, visibleJson, visibleXml]) {
    expect(show(text)).toBe(text);
  }
});

describe('a name that may look like another one', () => {
  const HIDDEN = [
    ...[
      '\0',
      '\t',
      '\n',
      '\r',
      '\u001b',
      '\u007f',
      '\u009b',
      '\u00a0',
      '\u00ad',
      '\u034f',
      '\u061c',
      '\u115f',
    ],
    ...['\u2003', '\u200b', '\u200d', '\u200f', '\u2028', '\u202e', '\u2060', '\u2069', '\u2800', '\u3000'],
    ...['\u3164', '\ufe0f', '\ufeff', '\ud800', '\u{e0041}', '\u{e0100}'],
  ];

  it('is refused wherever it has a character that is not seen', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.constantFrom(...HIDDEN), (before, after, hidden) => {
        expect(nameMistake(`${before}${hidden}${after}`)).toMatch(/^expected visible .*, got \\u/);
      }),
    );
  });

  it.each(['a  b', 'cafe\u0301', '\u0301a', 'a\ufffc', 'a\ue000', 'a\u0378', 'a\u{1d159}'])(
    'is refused in a form that has a twin: %j',
    (name) => {
      expect(nameMistake(name)).toMatch(/^expected /);
    },
  );

  it('may have any letters with marks, in their one form', () => {
    expect(['café', 'Ελλάδα', '気候', 'a b'].map(nameMistake)).toEqual(Array(4).fill(undefined));
  });
});

it('JSON is the same to a program, and holds nothing that is not seen', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), fc.constantFrom(0, 2), (value, indent) => {
      const json = JSON.stringify(value, null, indent);
      const shown = visibleJson(json);
      expect(JSON.parse(shown)).toEqual(JSON.parse(json));
      expect(shown).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
    }),
  );
});
