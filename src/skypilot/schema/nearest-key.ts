/** Suggests the right key for an unknown one: the nearest name, or the same name at another depth. */

import { isMapping, type Mapping, member, type Path } from '../../base/yaml/tree.ts';
import { nearest } from '../../config/nearest.ts';
import { alternativesOf, type JsonSchema, namesInPattern, patternWords, schemaOf } from './json-schema.ts';

/** Mappings with more keys are not listed. */
const MAX_LISTED = 8;

/** Task keys of older versions of SkyPilot. */
const MOVED: Readonly<Record<string, string>> = {
  experimental: 'use config instead of experimental.config_overrides',
};

interface UnknownKey {
  readonly key: string;
  /** The path of the mapping that contains it. */
  readonly at: Path;
  /** The schema of that mapping. */
  readonly schema: JsonSchema;
}

interface KeyHint {
  readonly words: string;
  /** The mapping for which the key was meant, if it is another one. */
  readonly meantFor?: Path;
}

/** Describes an unknown key: `unknown key; the nearest right key is "provision_timeout"`. */
export function keyHint(unknown: UnknownKey, root: JsonSchema, tree: Mapping): KeyHint {
  const { key, at, schema } = unknown;
  if (isConfigKey(unknown)) {
    return { words: 'a task may not set this key' };
  }
  if (at.length === 0 && Object.hasOwn(MOVED, key)) {
    return { words: `unknown key; ${MOVED[key]}` };
  }
  const names = keysOf(schema).filter(isPublic);
  const index = keyIndex(root);
  const here = nearest(key, names, 2);
  const place = here === undefined ? bestPlace(index.get(key) ?? [], at, tree) : undefined;
  if (place !== undefined) {
    const { shown, parent, exists } = place;
    const where = shown === '' ? 'to the top level' : `below ${shown}`;
    const words = `unknown key here; it belongs ${where}${exists ? ': check the indentation' : ''}`;
    return { words, ...(exists && { meantFor: parent }) };
  }
  const near = here ?? nearest(key, names);
  if (near !== undefined) {
    return { words: `unknown key; the nearest right key is "${near}"` };
  }
  const expected = expectedKeys(names, schema);
  const far = expected === '' ? nearest(key, [...index.keys()].filter(isPublic), 2) : undefined;
  const farPlace = far === undefined ? undefined : bestPlace(index.get(far) ?? [], at, tree);
  if (farPlace !== undefined) {
    const where = farPlace.shown === '' ? 'at the top level' : `below ${farPlace.shown}`;
    return { words: `unknown key; the nearest right key is "${far}" ${where}` };
  }
  return { words: `unknown key${expected}` };
}

/** Keys that start with `_` are SkyPilot's own. */
function isPublic(name: string): boolean {
  return !name.startsWith('_');
}

function expectedKeys(names: readonly string[], { patternProperties = {} }: JsonSchema): string {
  if (names.length > 0) {
    const [one = ''] = names;
    return names.length > MAX_LISTED
      ? ''
      : `; expected ${names.length === 1 ? one : `one of ${names.join(', ')}`}`;
  }
  const [pattern] = Object.keys(patternProperties);
  return pattern === undefined ? '' : `; expected ${patternWords(pattern)}`;
}

/** Whether the key is valid in a configuration, but not in that of a task. */
function isConfigKey({ key, at }: UnknownKey): boolean {
  const start = at[0] === 'config' ? 1 : at.indexOf('_cluster_config_overrides') + 1;
  const path = [...at.slice(start), key];
  const places = start === 0 ? [] : (keyIndex(schemaOf('config')).get(key) ?? []);
  return places.some(
    (place) =>
      place.length === path.length && place.every((step, index) => step === null || step === path[index]),
  );
}

interface Found {
  /** The mapping that the key belongs to, as text. */
  readonly shown: string;
  readonly parent: Path;
  /** Whether the tree has that mapping, or `null` in its place. */
  readonly exists: boolean;
}

/** The place nearest to the written key: an existing mapping first, then the longest common path. */
function bestPlace(places: readonly KeyPlace[], at: Path, tree: Mapping): Found | undefined {
  const found = places.map((place) => {
    const { parent, exists } = parentIn(tree, place.slice(0, -1), at);
    return { parent, exists, common: commonLength(parent, at), length: place.length };
  });
  const [best] = found.sort(
    (a, b) => Number(b.exists) - Number(a.exists) || b.common - a.common || a.length - b.length,
  );
  return best && { ...best, shown: best.parent.join('.') };
}

function parentIn(tree: Mapping, place: KeyPlace, at: Path): { parent: Path; exists: boolean } {
  const parent: string[] = [];
  let value: unknown = tree;
  let exists = true;
  for (const [index, step] of place.entries()) {
    const beside = at[index];
    const name = step ?? (typeof beside === 'string' ? beside : undefined) ?? '<name>';
    value = exists && isMapping(value) ? member(value, name) : undefined;
    exists = value === null || isMapping(value);
    parent.push(name);
  }
  return { parent, exists };
}

function commonLength(a: Path, b: Path): number {
  const different = a.findIndex((step, index) => step !== b[index]);
  return different === -1 ? a.length : different;
}

/** Any name, such as that of a context, or any item of a list. */
const ANY = null;

/** The path from the root to a key. */
type KeyPlace = readonly (string | typeof ANY)[];

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

/** The keys that a schema names for one mapping, including its alternatives. */
function keysOf(schema: JsonSchema): string[] {
  const { properties = {}, patternProperties = {} } = schema;
  const named = Object.keys(patternProperties).flatMap(namesInPattern);
  return [...Object.keys(properties), ...named, ...alternativesOf(schema).flatMap(keysOf)];
}
