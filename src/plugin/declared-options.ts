/** The options that a class brings along, a filter or a policy. */
import type { z } from 'zod';
import { describeOptions, type Option } from '../config/option.ts';
import { optionPrefix } from '../filter/base-filter.ts';

/**
 * Describes the static `options` of a class. Throws an `Error` if they are no zod object, or one of them does not start with
 * the name of the class in snake case, without its last word.
 */
export function declaredOptions(
  section: string,
  { name, options }: { readonly name: string; readonly options: unknown },
): Option[] {
  if (!isZodObject(options)) {
    throw new Error(`the static options of ${name} are no zod object (zod 4)`);
  }
  const prefix = optionPrefix(name);
  for (const option of Object.keys(options.shape)) {
    if (option !== prefix && !option.startsWith(`${prefix}_`)) {
      throw new Error(
        `${name} declares the option ${option}, and its options must be ${prefix} or start with ${prefix}_`,
      );
    }
  }
  return describeOptions(section, options);
}

/** By its form: a class may come with its own copy of zod. */
function isZodObject(value: unknown): value is z.ZodObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    'shape' in value &&
    'safeParse' in value &&
    'toJSONSchema' in value
  );
}
