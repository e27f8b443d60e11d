import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { firstMistake } from '../../src/lease/request-schemas.ts';

/** Counts its calls. */
function counting() {
  const looked = { times: 0 };
  const item = z.custom<number>((value) => {
    looked.times += 1;
    return typeof value === 'number';
  }, 'a number');
  return { looked, item };
}

describe('the first mistake', () => {
  it('is found without checking the values after it', () => {
    for (const compile of [(schema: z.ZodType) => schema, (schema: z.ZodType) => z.compile(schema)]) {
      const { looked, item } = counting();
      const schema = compile(z.object({ list: z.array(item), rest: z.array(item) }));
      const wrong = Array(100_000).fill('x');
      expect(firstMistake(schema, { list: [1, ...wrong], rest: wrong })).toMatchObject({
        path: ['list', 1],
        message: 'a number',
        input: 'x',
      });
      expect(looked.times).toBeLessThan(10);
    }
  });

  it('is found in an object with many names', () => {
    const names = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, 1]));
    const schema = z.compile(z.object({ labels: z.record(z.string(), z.string()) }));
    expect(firstMistake(schema, { labels: names })).toMatchObject({ path: ['labels', 'k0'], input: 1 });
  });

  it('is undefined if everything is valid', () => {
    expect(firstMistake(z.object({ list: z.array(z.number()) }), { list: [1, 2] })).toBeUndefined();
  });
});
