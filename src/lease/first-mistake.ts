import type { z } from 'zod';

/**
 * The first thing that is wrong with a value; `undefined` when nothing is. zod's own `safeParse` goes on to the last one: of a list
 * of a million mistakes it makes a million objects, and a request must not cost that.
 */
export function firstMistake(schema: z.ZodType, value: unknown): z.core.$ZodIssue | undefined {
  if (schema.validate(value)) {
    return undefined;
  }
  // zod knows the flag, and sets it in `validate`, which does not say what is wrong.
  const context: z.core.ParseContextInternal<z.core.$ZodIssue> = { reportInput: true, abortEarly: true };
  const { error } = schema.safeParse(value, context);
  return error?.issues[0] ?? { code: 'custom', path: [], message: 'something else', input: value };
}
