/** Differences between two schemas, by path. */
import { isDeepStrictEqual } from 'node:util';

export interface Difference {
  readonly kind: 'added' | 'removed' | 'changed';
  /** `kubernetes.context_configs.<name>.ports`; `[]` means the items of a list. */
  readonly path: string;
  /** The change. Empty for keys. */
  readonly what: string;
}

/** Lists of names in any order. */
const NAMES: ReadonlySet<string> = new Set([
  'enum',
  'case_insensitive_enum',
  'case_sensitive_enum',
  'required',
]);
/** Longer values are cut. */
const MAX_SHOWN = 100;

/** Expects normalized schemas. */
export function differences(ours: Schema, theirs: Schema, path = ''): Difference[] {
  const keywords = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
  return [...keywords].flatMap((keyword) => differencesOf(keyword, ours[keyword], theirs[keyword], path));
}

function differencesOf(keyword: string, ours: unknown, theirs: unknown, path: string): Difference[] {
  if (isDeepStrictEqual(ours, theirs)) {
    return [];
  }
  if (keyword === 'properties' || keyword === 'patternProperties') {
    return keysOf(isSchema(ours) ? ours : {}, isSchema(theirs) ? theirs : {}, path);
  }
  if (isSchema(ours) && isSchema(theirs)) {
    return differences(ours, theirs, joined(path, keyword));
  }
  if (Array.isArray(ours) && Array.isArray(theirs)) {
    if (NAMES.has(keyword)) {
      return names(keyword, ours, theirs, path);
    }
    if (ours.length === theirs.length && [...ours, ...theirs].every(isSchema)) {
      return ours.flatMap((one: Schema, index) =>
        differences(one, theirs[index], `${path}(${keyword} ${index + 1})`),
      );
    }
  }
  return [{ kind: 'changed', path: path || '(all)', what: `${keyword}: ${shown(ours)} → ${shown(theirs)}` }];
}

function keysOf(ours: Schema, theirs: Schema, path: string): Difference[] {
  return [...new Set([...Object.keys(ours), ...Object.keys(theirs)])].flatMap((key): Difference[] => {
    const below = path === '' ? key : `${path}.${key}`;
    const [before, after] = [ours, theirs].map((one) => (Object.hasOwn(one, key) ? one[key] : undefined));
    if (before === undefined || after === undefined) {
      return [{ kind: before === undefined ? 'added' : 'removed', path: below, what: '' }];
    }
    return isSchema(before) && isSchema(after) ? differences(before, after, below) : [];
  });
}

function names(
  keyword: string,
  ours: readonly unknown[],
  theirs: readonly unknown[],
  path: string,
): Difference[] {
  const missing = (from: readonly unknown[], sign: string, than: readonly unknown[]) =>
    from.filter((name) => !than.includes(name)).map((name) => `${sign}${String(name)}`);
  const changed = [...missing(theirs, '+', ours), ...missing(ours, '-', theirs)];
  return changed.length === 0
    ? []
    : [{ kind: 'changed', path: path || '(all)', what: `${keyword}: ${changed.join(' ')}` }];
}

function joined(path: string, keyword: string): string {
  switch (keyword) {
    case 'additionalProperties':
      return path === '' ? '<name>' : `${path}.<name>`;
    case 'items':
      return `${path}[]`;
    default:
      return `${path}(${keyword})`;
  }
}

function shown(value: unknown): string {
  const text = value === undefined ? 'none' : JSON.stringify(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

/** Descriptions, or keywords without effect. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['$schema', 'title', 'description', 'default']);
/** Their members are key names, not keywords. */
export const OF_NAMES: ReadonlySet<string> = new Set(['properties', 'patternProperties']);

export type Schema = { readonly [keyword: string]: unknown };

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function normalForm(schema: Schema): Schema {
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([keyword, value]) => !WITHOUT_EFFECT.has(keyword) && !isEmpty(keyword, value))
      .map(([keyword, value]) => [keyword, OF_NAMES.has(keyword) ? named(value) : below(value)]),
  );
}

function isEmpty(keyword: string, value: unknown): boolean {
  return keyword === 'required' && Array.isArray(value) && value.length === 0;
}

function named(value: unknown): unknown {
  return isSchema(value)
    ? Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, below(schema)]))
    : value;
}

function below(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(below);
  }
  return isSchema(value) ? normalForm(value) : value;
}
