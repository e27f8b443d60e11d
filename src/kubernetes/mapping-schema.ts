import { z } from 'zod';

/** A mapping in which nothing else may stand. The error of an unknown name carries those that are known: see `mistakes`. */
export function mapping<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: ({ code }) => (code === 'unrecognized_keys' ? Object.keys(shape).join(' ') : 'a mapping'),
  });
}
