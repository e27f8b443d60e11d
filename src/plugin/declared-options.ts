/** The options that a class declares: a filter, or an admin policy. */
import type { z } from 'zod';
import { describeOptions, type Option } from '../config/option.ts';
import { optionPrefix } from './class-names.ts';

/**
 * Describes the static `options` of a class. Throws an `Error` if they are no zod object, or if the name of an option does not
 * start with the prefix of the class.
 */
export function declaredOptions(
  section: string,
  { name, options }: { readonly name: string; readonly options: unknown },
): readonly Option[] {
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

/** By its attributes, not by `instanceof`: a class may have its own copy of zod. */
function isZodObject(value: unknown): value is z.ZodObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    'shape' in value &&
    'safeParse' in value &&
    'toJSONSchema' in value
  );
}
