import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OptionType } from '../../src/config/option.ts';
import { readValue, ValueError } from '../../src/config/typed.ts';

function read(text: string, type: OptionType, itemType: OptionType = 'text'): unknown {
  return readValue(text, { type, itemType });
}

/** The message of the error, which is empty when the type says it all. */
function refusal(text: string, type: OptionType, itemType: OptionType = 'text'): string {
  try {
    return `accepted as ${JSON.stringify(read(text, type, itemType))}`;
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(ValueError);
    return (thrown as ValueError).message;
  }
}

const all = (texts: readonly string[], value: boolean) =>
  Object.fromEntries(texts.map((text) => [text, value]));

/** Type, values by text, and texts that are refused without a message. */
it.each<[OptionType, Record<string, unknown>, string[]]>([
  [
    'integer',
    { '60': 60, '+60': 60, '-1': -1, '007': 7, '86_400': 86_400, '1_0_0': 100, ' \t60\n': 60 },
    [
      ...['', ' ', '1.5', '1.0', '0x10', '0b1', '0o7', '1e3', '_1', '1_', '1__0', '+', '-', '--1', '+-1'],
      ...['- 1', '1 000', '1,000', '60s', '60 # a minute', 'one day', 'Infinity', 'NaN', 'true', '１'],
    ],
  ],
  [
    'number',
    { '1': 1, '-0.25': -0.25, '+.5': 0.5, '5.': 5, '1e3': 1000, '1.5E-2': 0.015, ' 1_0.5 ': 10.5 },
    ['', '.', 'e3', '0x10', '1e', '1e999', 'nan', 'inf', 'Infinity', '1,5', '1 2'],
  ],
  [
    'boolean',
    {
      ...all(['true', 'True', 'TRUE', '1', 'on', 'yes', ' Yes '], true),
      ...all(['false', 'False', '0', 'off', 'no', 'NO'], false),
    },
    ['', 't', 'y', '2', 'enabled', 'true false', 'null', 'none'],
  ],
  [
    'text',
    Object.fromEntries(['', ' a ', 'true', '[1]', 'a,b', 'a:b', '0x10'].map((text) => [text, text])),
    [],
  ],
  [
    'list',
    {
      '': [],
      '  ': [],
      ',': [],
      a: ['a'],
      ' a ,  b ': ['a', 'b'],
      'a,b,': ['a', 'b'],
      'a,b,,': ['a', 'b'],
      'a,\nb': ['a', 'b'],
      'a\nb': ['a\nb'],
      '"a","b"': ['"a"', '"b"'],
      '[a]': ['[a]'],
    },
    [],
  ],
  [
    'dictionary',
    {
      '': {},
      'a:1': { a: '1' },
      ' a : 1 , b:2 ': { a: '1', b: '2' },
      'a:1,': { a: '1' },
      'a:': { a: '' },
      'a:b:c': { a: 'b:c' },
      'site:http://h:80': { site: 'http://h:80' },
    },
    [],
  ],
])('reads a value of the type %s as oslo.config does', (type, values, refused) => {
  const texts = Object.keys(values);
  expect(Object.fromEntries(texts.map((text) => [text, read(text, type)]))).toEqual(values);
  expect(refused.filter((text) => refusal(text, type) !== '')).toEqual([]);
});

describe('an integer', () => {
  it('is refused when it cannot be represented exactly', () => {
    for (const text of ['9007199254740991', '-9007199254740991']) {
      expect(read(text, 'integer')).toBe(Number(text));
    }
    for (const text of ['9007199254740992', '-9007199254740992', '1'.repeat(400)]) {
      expect(refusal(text, 'integer')).toBe('it is too large');
    }
  });

  it('is never rounded, whatever its digits', () => {
    const digits = fc.stringMatching(/^[0-9]{1,6}$/);
    const space = fc.constantFrom('', ' ', '\t', ' \n ');
    const groups = fc.array(digits, { minLength: 1, maxLength: 4 });
    const numeral = fc.tuple(space, fc.constantFrom('', '+', '-'), groups, space);
    fc.assert(
      fc.property(numeral, ([before, sign, groups, after]) => {
        const exact = BigInt(groups.join('')) * (sign === '-' ? -1n : 1n);
        const text = `${before}${sign}${groups.join('_')}${after}`;
        if (exact > BigInt(Number.MAX_SAFE_INTEGER) || exact < BigInt(Number.MIN_SAFE_INTEGER)) {
          expect(refusal(text, 'integer')).toBe('it is too large');
        } else {
          expect(BigInt(read(text, 'integer') as number)).toBe(exact);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("is read from exactly the texts of the grammar of Python's int()", () => {
    const unit = fc.constantFrom('0', '1', '7', '_', '+', '-', '.', 'e', 'x', ' ');
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 7 }), (written) => {
        expect(refusal(written, 'integer').startsWith('accepted')).toBe(isPythonInteger(written));
      }),
      { numRuns: 700 },
    );
  });
});

/** Character by character: spaces, a sign, digits with single underscores between them, spaces. */
function isPythonInteger(text: string): boolean {
  const characters = [...text.trim()];
  if (characters[0] === '+' || characters[0] === '-') {
    characters.shift();
  }
  const isDigit = (one: string | undefined) => one !== undefined && '0123456789'.includes(one);
  const isBetweenDigits = (at: number) => isDigit(characters[at - 1]) && isDigit(characters[at + 1]);
  return (
    characters.length > 0 &&
    characters.every((one, at) => isDigit(one) || (one === '_' && isBetweenDigits(at)))
  );
}

describe('a list or a dictionary', () => {
  it('has items of its type', () => {
    expect(read('1, +2, 003', 'list', 'integer')).toEqual([1, 2, 3]);
    expect(read('a:60,\nb:+1_0', 'dictionary', 'integer')).toEqual({ a: 60, b: 10 });
    expect(refusal('1,x', 'list', 'integer')).toBe('');
    expect(refusal('a:one', 'dictionary', 'integer')).toBe('');
  });

  it.each([
    ['physical:host:10', { 'physical:host': 10 }],
    ['a:b:c:1, physical : host : -1', { 'a:b:c': 1, 'physical : host': -1 }],
    ['physical:host:1,physical:gpu:2', { 'physical:host': 1, 'physical:gpu': 2 }],
    ['climate/physical:host:+2', { 'climate/physical:host': 2 }],
    ['::1', { ':': 1 }],
  ])('of numbers splits its pairs at the last colon: %j', (text, pairs) => {
    expect(read(text, 'dictionary', 'integer')).toEqual(pairs);
    expect(read(text, 'dictionary', 'number')).toEqual(pairs);
  });

  it('of booleans splits its pairs at the last colon, of texts at the first', () => {
    expect(read('physical:host:yes', 'dictionary', 'boolean')).toEqual({ 'physical:host': true });
    expect(read('physical:host:10', 'dictionary', 'text')).toEqual({ physical: 'host:10' });
  });

  it('of numbers refuses a name with colons without a number after it', () => {
    for (const text of ['physical:host', 'physical:host:', 'physical:host:x', 'physical:host:1.5']) {
      expect(refusal(text, 'dictionary', 'integer'), text).toBe('');
    }
  });

  it.each<[OptionType, string, string[]]>([
    ['list', 'an item is empty', ['a,,b', ',a', 'a, ,b']],
    ['dictionary', 'an item is empty', ['a:1,,b:2']],
    ['dictionary', 'a pair has no name or no ":"', ['a', 'a=1', 'a:1,b', ':1', ' : 1']],
    ['dictionary', 'a name is given twice', ['a:1,b:2,a:3', 'toString:1,toString:2']],
    ['dictionary', '__proto__ cannot be the name of a pair', ['a:1,__proto__:2']],
  ])('%s: %s', (type, reason, texts) => {
    expect(texts.map((text) => refusal(text, type))).toEqual(texts.map(() => reason));
    expect(refusal('physical:host:1,physical:host:2', 'dictionary', 'integer')).toBe('a name is given twice');
  });
});
