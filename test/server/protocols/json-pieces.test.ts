/** A body that is too long to be parsed at once is parsed piece by piece, to the same value. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseInPieces, TooMuchJsonError } from '../../../src/server/protocols/json-pieces.ts';
import { ANY_CHARACTER } from '../../support/characters.ts';

const ROOMY = { maxValues: 1_000_000, maxNames: 1_000_000, maxDepth: 100 };
const bytesOf = (text: string) => new TextEncoder().encode(text);

/** What comes of a text: the value with the order of its members, or that it is none. */
async function outcome(parse: () => unknown): Promise<unknown> {
  try {
    const value = await parse();
    return { value, text: JSON.stringify(value) };
  } catch (thrown) {
    if (thrown instanceof SyntaxError || thrown instanceof TypeError) {
      return 'no JSON';
    }
    throw thrown;
  }
}

const whole = (bytes: Uint8Array) =>
  outcome(() => JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)));
const inPieces = (bytes: Uint8Array, size: number) => outcome(() => parseInPieces(bytes, ROOMY, size));

const names = fc.oneof(
  fc.string(),
  fc.constantFrom('__proto__', 'constructor', 'toJSON', '1', '-1', '', '"'),
);
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc
      .oneof(fc.string({ unit: ANY_CHARACTER }), fc.double(), fc.boolean(), fc.constant(null))
      .map((one) => JSON.stringify(one)),
    fc.array(tie('value'), { maxLength: 8 }).map((items) => `[${items.join(',')}]`),
    fc
      .array(fc.tuple(names, tie('value')), { maxLength: 8 })
      .map(
        (members) => `{ ${members.map(([name, value]) => `${JSON.stringify(name)}\n:${value}`).join(' ,')}}`,
      ),
  ),
})).value as fc.Arbitrary<string>;

describe('JSON in pieces', () => {
  it('means what JSON.parse makes of it, wherever it is cut', async () => {
    await fc.assert(
      fc.asyncProperty(json, fc.integer({ min: 0, max: 40 }), async (text, size) => {
        const bytes = bytesOf(text);
        expect(await inPieces(bytes, size)).toEqual(await whole(bytes));
      }),
      { numRuns: 500 },
    );
  });

  it('is none where JSON.parse says so: with a byte more, fewer or another one', async () => {
    const place = fc.nat();
    const inserted = fc
      .constantFrom(...'[]{},:"\\ 01eE-+.ntu\u0000\n', 'null', ',,', '][', '"a":', '\ufeff')
      .map(bytesOf);
    const broken = fc.tuple(json, place, fc.nat(3), inserted).map(([text, at, cut, added]) => {
      const bytes = bytesOf(text);
      const start = at % (bytes.length + 1);
      return new Uint8Array([...bytes.slice(0, start), ...added, ...bytes.slice(start + cut)]);
    });
    await fc.assert(
      fc.asyncProperty(broken, fc.integer({ min: 0, max: 40 }), async (bytes, size) => {
        expect(await inPieces(bytes, size)).toEqual(await whole(bytes));
      }),
      { numRuns: 600 },
    );
  });

  it.each([
    '[[1,2],[3,4]] ,1',
    '[1,2],[3]',
    '[[1,2][3,4]]',
    '[[1,2],]',
    '[,[1,2]]',
    '{"a":[1,2]"b":1}',
    '{"a":-[1,2]}',
    '{"a":1"b":[1,2]}',
    '{"a":[1,2],}',
    '{[1,2]:1}',
    '{"a":[1,2}',
    '[[1,2]}',
    '[[1,2]',
    ']',
    '',
    '[1,2]x',
    'x[1,2]',
    '["a,b]',
    '{"a" [1,2]}',
    '{:[1,2]}',
  ])('is none: %s', async (text) => {
    for (const size of [0, 1, 4, 1000]) {
      expect(await inPieces(bytesOf(text), size)).toBe('no JSON');
    }
  });

  it('is in UTF-8, with or without a mark at its start', async () => {
    expect(await parseInPieces(bytesOf('\ufeff["ä",["😀",1]]'), ROOMY, 2)).toEqual(['ä', ['😀', 1]]);
    expect(await inPieces(new Uint8Array([0x5b, 0x22, 0xc3, 0x22, 0x2c, 0x31, 0x5d]), 0)).toBe('no JSON');
    expect(await inPieces(bytesOf('["a",\ufeff["b",1]]'), 0)).toBe('no JSON');
  });

  it('stops at the first value, and at the first level, that is too much', async () => {
    const bounds = { maxValues: 1000, maxNames: 100, maxDepth: 10 };
    for (const shape of ['[', '[1,', '{"a":', '{"a":1,', '[{},', '[[],']) {
      const bytes = bytesOf(shape.repeat(100_000));
      await expect(parseInPieces(bytes, bounds)).rejects.toThrow(TooMuchJsonError);
    }
    await expect(parseInPieces(bytesOf('['.repeat(11) + ']'.repeat(11)), bounds)).rejects.toThrow(
      'a body that is nested no deeper than 10 levels',
    );
    const members = (count: number) =>
      bytesOf(`[{${Array.from({ length: count }, (_, index) => `"${index}":1`).join(',')}}]`);
    // A few names may count as one, by chance: 120 are more than 100 however they fall.
    await expect(parseInPieces(members(120), bounds)).rejects.toThrow(
      'at most 100 different names in the body',
    );
    expect(await parseInPieces(members(100), bounds)).toBeInstanceOf(Array);
    expect(await parseInPieces(bytesOf('['.repeat(10) + ']'.repeat(10)), bounds)).toBeInstanceOf(Array);
  });

  it('lets others have their turn in between', async () => {
    let turns = 0;
    const counting = setInterval(() => {
      turns += 1;
    }, 1);
    try {
      await parseInPieces(bytesOf(`[${Array(50_000).fill('{"a":[]}').join(',')}]`), ROOMY);
    } finally {
      clearInterval(counting);
    }
    expect(turns).toBeGreaterThan(1);
  });
});
