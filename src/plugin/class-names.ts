/** What a class defines: by its name, its file and the prefix of its options; and the options that it declares. */
import type { z } from 'zod';
import { describeOptions, type Option } from '../config/option.ts';

/** `GPUQuotaFilter` → `gpu_quota`: the prefix of its options. */
export function optionPrefix(className: string): string {
  return words(className).slice(0, -1).join('_');
}

/** `GPUQuotaFilter` → `gpu-quota-filter`: the name of its file, without extension. */
export function classFileName(className: string): string {
  return words(className).join('-');
}

/**
 * The option prefix of a class that could not be loaded, from its specifier: `my-package#MyPolicy`,
 * `MyFilter`, `./my-policy.js`, `pkg.MyPolicy`. Empty = none.
 */
export function prefixOfNamed(specifier: string): string {
  const [place = '', name = ''] = specifier.split('#');
  if (name !== '') {
    return optionPrefix(name);
  }
  const file = place.replace(/^.*[/\\]/, '').replace(/\.m?[jt]s$/, '');
  return file === place
    ? optionPrefix(place.slice(place.lastIndexOf('.') + 1))
    : file.split('-').slice(0, -1).join('_');
}

function words(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(' ');
}

/**
 * Describes the static `options` of a class. Throws an `Error` if they are no zod object, or if an option's
 * name does not start with the prefix of the class.
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

/** By attributes, not by `instanceof`: a class may have its own copy of zod. */
function isZodObject(value: unknown): value is z.ZodObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    'shape' in value &&
    'safeParse' in value &&
    'toJSONSchema' in value
  );
}
