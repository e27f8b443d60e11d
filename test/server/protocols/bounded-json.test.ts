/** What is in a long body is counted before it is parsed. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkBounds, TooMuchJsonError } from '../../../src/server/protocols/bounded-json.ts';
import { ANY_CHARACTER } from '../../support/characters.ts';

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

/** What there is in a value, counted in the value itself. */
function counted(value: unknown, depth = 0): { values: number; names: string[]; depth: number } {
  if (typeof value !== 'object' || value === null) {
    return { values: 0, names: [], depth };
  }
  const parts = Object.values(value).map((part) => counted(part, depth + 1));
  return {
    // Each container, and each comma in it.
    values: 1 + Math.max(0, parts.length - 1) + parts.reduce((sum, part) => sum + part.values, 0),
    names: [...(Array.isArray(value) ? [] : Object.keys(value)), ...parts.flatMap((part) => part.names)],
    depth: Math.max(depth + 1, ...parts.map((part) => part.depth)),
  };
}

describe('the bounds of JSON', () => {
  it('are those of the value, however its strings and names are written', async () => {
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 5, withCrossShrink: true },
        fc.oneof(fc.string({ unit: ANY_CHARACTER }), fc.constantFrom('":', '\\', '{[,', 1, null, false)),
        fc.array(tie('any'), { maxLength: 8 }),
        fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('__proto__', '":{', '\\', '')), tie('any')),
      ),
    })).any;
    await fc.assert(
      fc.asyncProperty(value, async (any) => {
        const { values, names, depth } = counted(any);
        const bounds = { maxValues: values, maxNames: new Set(names).size, maxDepth: depth };
        await checkBounds(bytesOf(any), bounds);
        for (const bound of ['maxValues', 'maxNames', 'maxDepth'] as const) {
          const tighter = { ...bounds, [bound]: bounds[bound] - 1 };
          if (bounds[bound] > 0) {
            await expect(checkBounds(bytesOf(any), tighter)).rejects.toThrow(TooMuchJsonError);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it('end the count at the first value that is too much, whatever is never closed', async () => {
    const bounds = { maxValues: 1000, maxNames: 100, maxDepth: 10 };
    for (const shape of ['[', '[1,', '{"a":', '{"a":1,', '[{},', '[[],']) {
      const bytes = new TextEncoder().encode(shape.repeat(100_000));
      await expect(checkBounds(bytes, bounds)).rejects.toThrow(TooMuchJsonError);
    }
  });

  it('are counted while others have their turn', async () => {
    let turns = 0;
    const count = () => {
      turns += 1;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    const bounds = { maxValues: 1_000_000, maxNames: 1, maxDepth: 3 };
    await checkBounds(bytesOf(Array(200_000).fill({ a: [] })), bounds);
    clearImmediate(counting);
    expect(turns).toBeGreaterThan(10);
  });
});
