import { z } from 'zod';

/** A mapping without unknown fields. The error for an unknown field lists the known ones: see `mistakes`. */
export function mapping<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: ({ code }) => (code === 'unrecognized_keys' ? Object.keys(shape).join(' ') : 'a mapping'),
  });
}
