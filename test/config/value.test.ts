import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OptionType } from '../../src/config/option.ts';
import { readValue, ValueError } from '../../src/config/value.ts';

function read(text: string, type: OptionType, itemType: OptionType = 'text'): unknown {
  return readValue(text, { type, itemType });
}

/** The detail of the error, which is empty where the type says it all. */
function refusal(text: string, type: OptionType, itemType: OptionType = 'text'): string {
  try {
    return `accepted as ${JSON.stringify(read(text, type, itemType))}`;
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(ValueError);
    return (thrown as ValueError).message;
  }
}

describe('an integer', () => {
  it.each([
    ['60', 60],
    ['+60', 60],
    ['-1', -1],
    ['007', 7],
    ['86_400', 86_400],
    ['1_0_0', 100],
    [' \t60\n', 60],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['-9007199254740991', Number.MIN_SAFE_INTEGER],
  ])('is read from %j as by the int() of Python', (text, value) => {
    expect(read(text, 'integer')).toBe(value);
  });

  it.each([
    '',
    ' ',
    '1.5',
    '1.0',
    '0x10',
    '0b1',
    '0o7',
    '1e3',
    '_1',
    '1_',
    '1__0',
    '+',
    '-',
    '--1',
    '+-1',
    '- 1',
  ])('is not read from %j', (text) => {
    expect(refusal(text, 'integer')).toBe('');
  });

  it.each(['1 000', '1,000', '60s', '60 # a minute', 'one day', 'Infinity', 'NaN', 'true', '１'])(
    'is not read from %j',
    (text) => {
      expect(refusal(text, 'integer')).toBe('');
    },
  );

  it.each(['9007199254740992', '-9007199254740992', '1'.repeat(400)])(
    'is refused when it is too large: %s',
    (text) => {
      expect(refusal(text, 'integer')).toBe('it is too large');
    },
  );

  it('is never rounded: for any numeral it is the number that its digits say', () => {
    const digits = fc.stringMatching(/^[0-9]{1,6}$/);
    const space = fc.constantFrom('', ' ', '\t', ' \n ');
    const numeral = fc.tuple(
      space,
      fc.constantFrom('', '+', '-'),
      fc.array(digits, { minLength: 1, maxLength: 4 }),
      space,
    );
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

  it('is read from exactly the texts that the grammar of int() knows', () => {
    const text = fc.string({
      unit: fc.constantFrom('0', '1', '7', '_', '+', '-', '.', 'e', 'x', ' '),
      maxLength: 7,
    });
    fc.assert(
      fc.property(text, (written) => {
        expect(!refusal(written, 'integer').startsWith('accepted')).toBe(!isPythonInteger(written));
      }),
      { numRuns: 2000 },
    );
  });
});

/** Character by character: spaces, a sign, digits with single underscores between them, spaces. */
function isPythonInteger(text: string): boolean {
  const characters = [...text.trim()];
  if (characters[0] === '+' || characters[0] === '-') {
    characters.shift();
  }
  const isDigit = (character: string | undefined) =>
    character !== undefined && '0123456789'.includes(character);
  return (
    characters.length > 0 &&
    characters.every(
      (character, at) =>
        isDigit(character) ||
        (character === '_' && isDigit(characters[at - 1]) && isDigit(characters[at + 1])),
    )
  );
}

describe('a number', () => {
  it.each([
    ['1', 1],
    ['1.5', 1.5],
    ['-0.25', -0.25],
    ['+.5', 0.5],
    ['5.', 5],
    ['1e3', 1000],
    ['1.5E-2', 0.015],
    ['1_000.5', 1000.5],
    [' 2 ', 2],
  ])('is read from %j', (text, value) => {
    expect(read(text, 'number')).toBe(value);
  });

  it.each(['', '.', 'e3', '0x10', '1e', '1e999', 'nan', 'inf', 'Infinity', '1,5', '1 2'])(
    'is not read from %j',
    (text) => {
      expect(refusal(text, 'number')).toBe('');
    },
  );
});

describe('a boolean', () => {
  it.each(['true', 'True', 'TRUE', '1', 'on', 'yes', ' Yes '])('%j is true', (text) => {
    expect(read(text, 'boolean')).toBe(true);
  });

  it.each(['false', 'False', '0', 'off', 'no', 'NO'])('%j is false', (text) => {
    expect(read(text, 'boolean')).toBe(false);
  });

  it.each(['', 't', 'y', '2', 'enabled', 'true false', 'null', 'none'])('%j is neither', (text) => {
    expect(refusal(text, 'boolean')).toBe('');
  });
});

describe('a text', () => {
  it.each(['', ' a ', 'true', '[1]', 'a,b', 'a:b', '0x10'])('is %j as it stands', (text) => {
    expect(read(text, 'text')).toBe(text);
  });
});

describe('a list', () => {
  it.each([
    ['', []],
    ['  ', []],
    ['a', ['a']],
    [' a ,  b ', ['a', 'b']],
    ['a,b,', ['a', 'b']],
    ['a,b,,', ['a', 'b']],
    [',', []],
    ['a,\nb', ['a', 'b']],
    ['a\nb', ['a\nb']],
    ['"a","b"', ['"a"', '"b"']],
    ['[a]', ['[a]']],
  ])('is what stands between the commas of %j', (text, items) => {
    expect(read(text, 'list')).toEqual(items);
  });

  it('has items of its type', () => {
    expect(read('1, +2, 003', 'list', 'integer')).toEqual([1, 2, 3]);
    expect(refusal('1,x', 'list', 'integer')).toBe('');
  });

  it.each(['a,,b', ',a', 'a, ,b'])('has no empty item: %j', (text) => {
    expect(refusal(text, 'list')).toBe('an item is empty');
  });
});

describe('a dictionary', () => {
  it.each([
    ['', {}],
    ['a:1', { a: '1' }],
    [' a : 1 , b:2 ', { a: '1', b: '2' }],
    ['a:1,', { a: '1' }],
    ['a:b:c', { a: 'b:c' }],
    ['a:', { a: '' }],
  ])('is made of the pairs of %j', (text, pairs) => {
    expect(read(text, 'dictionary')).toEqual(pairs);
  });

  it('has values of its type', () => {
    expect(read('a:60,\nb:+1_0', 'dictionary', 'integer')).toEqual({ a: 60, b: 10 });
    expect(refusal('a:one', 'dictionary', 'integer')).toBe('');
  });

  it.each([
    ['physical:host:10', { 'physical:host': 10 }],
    ['a:b:c:1, physical : host : -1', { 'a:b:c': 1, 'physical : host': -1 }],
    ['climate/physical:host:+2', { 'climate/physical:host': 2 }],
    ['::1', { ':': 1 }],
  ])('of numbers is split at the last colon, since no number has one: %j', (text, pairs) => {
    expect(read(text, 'dictionary', 'integer')).toEqual(pairs);
    expect(read(text, 'dictionary', 'number')).toEqual(pairs);
  });

  it('of true and false is split at the last colon too, and of texts at the first', () => {
    expect(read('physical:host:yes', 'dictionary', 'boolean')).toEqual({ 'physical:host': true });
    expect(read('physical:host:10', 'dictionary', 'text')).toEqual({ physical: 'host:10' });
    expect(read('site:http://h:80', 'dictionary', 'text')).toEqual({ site: 'http://h:80' });
  });

  it('of numbers is not made from names with colons that have no number behind them, or come twice', () => {
    for (const text of ['physical:host', 'physical:host:', 'physical:host:x', 'physical:host:1.5']) {
      expect(refusal(text, 'dictionary', 'integer'), text).toBe('');
    }
    expect(refusal('physical:host:1,physical:host:2', 'dictionary', 'integer')).toBe('a name is given twice');
    expect(read('physical:host:1,physical:gpu:2', 'dictionary', 'integer')).toEqual({
      'physical:host': 1,
      'physical:gpu': 2,
    });
  });

  it.each([
    ['a', 'a pair has no name or no ":"'],
    ['a=1', 'a pair has no name or no ":"'],
    ['a:1,b', 'a pair has no name or no ":"'],
    [':1', 'a pair has no name or no ":"'],
    [' : 1', 'a pair has no name or no ":"'],
    ['a:1,,b:2', 'an item is empty'],
    ['a:1,b:2,a:3', 'a name is given twice'],
    ['toString:1,toString:2', 'a name is given twice'],
    ['a:1,__proto__:2', '__proto__ cannot be the name of a pair'],
  ])('is not made from %j', (text, reason) => {
    expect(refusal(text, 'dictionary')).toBe(reason);
  });

  it('may have names that mean something to JavaScript', () => {
    const pairs = read('constructor:1,toString:2,hasOwnProperty:3', 'dictionary', 'integer') as object;
    expect(Object.entries(pairs)).toEqual([
      ['constructor', 1],
      ['toString', 2],
      ['hasOwnProperty', 3],
    ]);
  });
});

it('no error of any type repeats the text, which may be a secret', () => {
  const types: OptionType[] = ['integer', 'number', 'boolean', 'list', 'dictionary'];
  const type = fc.constantFrom(...types);
  const text = fc.array(fc.constantFrom('sEcReT', ',', ':', ' ', '1')).map((parts) => parts.join(''));
  fc.assert(
    fc.property(text, type, type, (written, of, itemType) => {
      const message = refusal(written, of, itemType);
      expect(message.startsWith('accepted') || !message.includes('sEcReT')).toBe(true);
    }),
  );
});
