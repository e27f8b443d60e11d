/** Where a schema allows which keys. */
import { alternativesOf, type JsonSchema } from './json-schema.ts';
import { namesInPattern } from './pattern-words.ts';

/** Any name, such as that of a context, or any item of a list. */
export const ANY = null;

/** From the root to a key. */
export type KeyPlace = readonly (string | typeof ANY)[];

const INDEXES = new WeakMap<JsonSchema, ReadonlyMap<string, readonly KeyPlace[]>>();

/** All places of each key of a schema. */
export function keyIndex(root: JsonSchema): ReadonlyMap<string, readonly KeyPlace[]> {
  const known = INDEXES.get(root);
  if (known !== undefined) {
    return known;
  }
  const index = new Map<string, KeyPlace[]>();
  const collect = (schema: JsonSchema, at: KeyPlace) => {
    for (const [key, below] of Object.entries(schema.properties ?? {})) {
      const place = [...at, key];
      index.set(key, [...(index.get(key) ?? []), place]);
      collect(below, place);
    }
    const { additionalProperties: further, items } = schema;
    for (const below of [typeof further === 'object' ? further : undefined, items]) {
      if (below !== undefined) {
        collect(below, [...at, ANY]);
      }
    }
    for (const below of alternativesOf(schema)) {
      collect(below, at);
    }
  };
  collect(root, []);
  INDEXES.set(root, index);
  return index;
}

/** The keys that a schema names for one mapping, those of its alternatives included. */
export function keysOf(schema: JsonSchema): string[] {
  const { properties = {}, patternProperties = {} } = schema;
  const named = Object.keys(patternProperties).flatMap(namesInPattern);
  return [...Object.keys(properties), ...named, ...alternativesOf(schema).flatMap(keysOf)];
}
