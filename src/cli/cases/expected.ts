/** What a case expects of a text: a part of it, or a regular expression between slashes. */

import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { isMapping, type Mapping, type Path, valueAt } from '../../yaml/tree.ts';
import { jsonText } from '../output.ts';

/** `/…/` and `/…/i` are regular expressions, everything else a part of the text; `undefined` = no regular expression. */
export function patternOf(expected: string): RegExp | undefined {
  const [, source, flags] = /^\/(.+)\/(i?)$/s.exec(expected) ?? [];
  try {
    return source === undefined
      ? new RegExp(expected.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'))
      : new RegExp(source, `${flags}u`);
  } catch {
    return undefined;
  }
}

export const expectedText = z
  .string('expected a part of the text, or /a regular expression/')
  .min(1, 'expected a part of the text, or /a regular expression/')
  .refine((written) => patternOf(written) !== undefined, 'expected a regular expression between the slashes');

/** Why a text is not as expected; `undefined` = it is. `what`: what the text is called. */
export function textDifference(what: string, expected: string, got: string): string | undefined {
  return patternOf(expected)?.test(got) === true
    ? undefined
    : `expected ${what} to ${expected.startsWith('/') ? 'match' : 'contain'} ${expected}, but it is: ${got}`;
}

/** `resources.any_of[0].use_spot`; a name with dots in quotes: `labels."a.b"`. */
export function pathOf(text: string): Path {
  return [...text.matchAll(/"([^"]*)"|\[(\d+)\]|([^.[\]"]+)/g)].map(([, quoted, index, name]) =>
    index === undefined ? (quoted ?? name ?? '') : Number(index),
  );
}

/** Equal numbers are equal, whether of 53 bits or not. */
export function plain(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(plain);
  }
  if (isMapping(value)) {
    return new Map(Object.entries(value).map(([name, one]) => [name, plain(one)] as const));
  }
  return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** Sentences about the paths at which a tree is not as expected. `null` = missing, too. */
export function pathDifferences(what: string, expected: Mapping | undefined, tree: unknown): string[] {
  return Object.entries(expected ?? {}).flatMap(([path, value]) => {
    const got = valueAt(tree, pathOf(path)) ?? null;
    return isDeepStrictEqual(plain(got), plain(value))
      ? []
      : [`${what}: ${path}: expected ${jsonText(value)}, got ${jsonText(got)}`];
  });
}
