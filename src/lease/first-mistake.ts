import type { z } from 'zod';

/**
 * The first mistake in a value; `undefined` if there is none. zod's own `safeParse` collects all of them: for a list with a million
 * mistakes that is a million objects, and a request must not cost that.
 */
export function firstMistake(schema: z.ZodType, value: unknown): z.core.$ZodIssue | undefined {
  if (schema.validate(value)) {
    return undefined;
  }
  // zod itself sets this flag in `validate`, which returns no issues.
  const context: z.core.ParseContextInternal<z.core.$ZodIssue> = { reportInput: true, abortEarly: true };
  const { error } = schema.safeParse(value, context);
  return error?.issues[0] ?? { code: 'custom', path: [], message: 'something else', input: value };
}
