/** What a case expects at some paths of a tree. */
import { isDeepStrictEqual } from 'node:util';
import { isMapping, type Mapping, type Path, valueAt } from '../../yaml/tree.ts';
import { jsonText } from '../output.ts';

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
