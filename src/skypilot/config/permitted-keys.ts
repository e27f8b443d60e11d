/**
 * Removes keys that a source of a SkyPilot configuration may not set, with reasons. Stricter than SkyPilot
 * where its server would accept a key from a client: `admin_policy`, `rbac`, and a value in place of the
 * mapping around a server key.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  formatPath,
  isAtOrBelow,
  isMapping,
  type Mapping,
  member,
  type Path,
  setMember,
  valueAt,
} from '../../base/yaml/tree.ts';
import { CLIENT_KEYS, type Key, type Level, SERVER_KEYS, TASK_KEYS } from './config-schema.ts';

/**
 * Why a key has no effect. `null`, `same`, `client` and `database` lose nothing; SkyPilot rejects a task with
 * a `task` key.
 */
export type DropReason = 'server' | 'around' | 'null' | 'same' | 'client' | 'database' | 'task';

/** A key that has no effect. */
interface Dropped {
  readonly path: Path;
  readonly reason: DropReason;
  /** Names keys, never values. */
  readonly message: string;
}

/** SkyPilot removes it from every configuration, as it contains a password. */
const DATABASE: Key = ['db'];

const MESSAGES: Readonly<Record<Exclude<DropReason, 'task' | 'around'>, string>> = {
  server: 'only the server may set this key, and it has another value or none',
  null: 'only the server may set this key, and null sets nothing',
  same: 'only the server may set this key, and it has the same value',
  client: 'the client uses it itself, and does not send it to the server',
  database: 'SkyPilot takes the database out of every configuration',
};

/** The effective part of a source. `server`: the configuration of the server. */
export function permittedTree(
  level: Level,
  tree: Mapping,
  server: Mapping,
): { readonly tree: Mapping; readonly dropped: readonly Dropped[] } {
  if (level === 'server') {
    const { tree: rest, taken } = withoutKeys(tree, [DATABASE]);
    return { tree: rest, dropped: taken.map((path) => dropped(path, 'database')) };
  }
  if (level === 'task') {
    const outside = keysOutside(tree, TASK_KEYS) as Key[];
    return {
      tree: withoutKeys(tree, outside).tree,
      dropped: outside.map((path) => {
        const allowed = formatKeys(keysBelow(path.slice(0, -1), TASK_KEYS));
        return { path, reason: 'task', message: `a task may not set this key; it may set ${allowed}` };
      }),
    };
  }
  const { tree: rest, taken } = withoutKeys(tree, SERVER_KEYS);
  const serverKeys = SERVER_KEYS.filter((key) => valueAt(server, key) !== undefined);
  const around = serverKeysReplaced(rest, serverKeys);
  return {
    tree: withoutKeys(rest, around).tree,
    dropped: [
      ...taken.map((key) => dropped(key, reasonOf(key, tree, server))),
      ...around.map((path): Dropped => {
        const keys = formatKeys(keysBelow(path, serverKeys));
        return { path, reason: 'around', message: `its value would take ${keys} away from the server` };
      }),
    ],
  };
}

function dropped(path: Path, reason: keyof typeof MESSAGES): Dropped {
  return { path, reason, message: MESSAGES[reason] };
}

function reasonOf(key: Key, tree: Mapping, server: Mapping): keyof typeof MESSAGES {
  const value = valueAt(tree, key);
  if (key[0] === DATABASE[0]) {
    return 'database';
  }
  if (value === null) {
    return 'null';
  }
  if (valueAt(withoutKeys(tree, CLIENT_KEYS).tree, key) === undefined) {
    return 'client';
  }
  return isDeepStrictEqual(value, valueAt(server, key)) ? 'same' : 'server';
}

/** `slurm: null` would delete the server's `slurm`, so only a mapping may contain a server key. */
function serverKeysReplaced(tree: Mapping, keys: readonly Key[]): Key[] {
  const replaced = keys.map((key) => replacedAround(tree, key)).filter((key) => key !== undefined);
  return [...new Map(replaced.map((key) => [formatPath(key), key])).values()];
}

/** The path at which a configuration has another value in place of a mapping around a key. */
function replacedAround(tree: Mapping, key: Key): Key | undefined {
  const around = key.slice(1).map((_, index) => key.slice(0, index + 1));
  return around.find((path) => {
    const value = valueAt(tree, path);
    return value !== undefined && !isMapping(value);
  });
}

/** A path with keys below it is never below one of them. */
function keysBelow(path: Path, keys: readonly Key[]): Key[] {
  return keys.filter((key) => isAtOrBelow(key, path));
}

/** `kubernetes.dws, kubernetes.kueue` */
export function formatKeys(keys: readonly Key[]): string {
  return keys.map(formatPath).join(', ');
}

/** Removes keys from a configuration, and mappings that become empty. `taken`: the removed keys. */
function withoutKeys(tree: Mapping, keys: readonly Key[]) {
  const taken = keys.filter((key) => valueAt(tree, key) !== undefined);
  return { tree: taken.reduce<Mapping>((rest, key) => without(rest, key), tree), taken };
}

function without(tree: Mapping, [name = '', ...below]: Key): Mapping {
  const value = member(tree, name);
  const rest = below.length > 0 && isMapping(value) ? without(value, below) : undefined;
  const copy: Record<string, unknown> = { ...tree };
  if (rest === undefined || Object.keys(rest).length === 0) {
    delete copy[name];
  } else {
    setMember(copy, name, rest);
  }
  return copy;
}

/**
 * The shortest paths of a configuration that are neither at nor below one of the keys, including a scalar
 * where a key expects a mapping.
 */
function keysOutside(tree: Mapping, allowed: readonly Key[], path: Path = []): Path[] {
  return Object.entries(tree).flatMap(([name, value]) => {
    const at = [...path, name];
    const below = allowed.filter((key) => key[path.length] === name);
    if (below.some((key) => key.length === at.length)) {
      return [];
    }
    return below.length > 0 && isMapping(value) ? keysOutside(value, below, at) : [at];
  });
}

/** Keys as paths: `['kubernetes', 'pod_config']` is that key and everything below it. */
export interface OverrideKeys {
  /** Only these, if set. An empty list allows nothing. */
  readonly allowedOverrideKeys?: readonly (readonly string[])[] | null | undefined;
  /** None of these. */
  readonly disallowedOverrideKeys?: readonly (readonly string[])[] | null | undefined;
}

/** An override sets a forbidden key, which is at `path`. */
export class OverrideKeyError extends Error {
  override readonly name = 'OverrideKeyError';
  readonly path: Path;

  constructor(path: Path, expectation: string) {
    super(`${formatPath(path)}: ${expectation}`);
    this.path = path;
  }
}

/**
 * Checks each leaf of an override, regardless of the base. SkyPilot checks only as deep as the base has
 * mappings, and accepts a scalar in place of a mapping around a key.
 *
 * @throws OverrideKeyError for the first key that the override may not set
 */
export function checkOverrideKeys(
  base: Mapping,
  overrides: Mapping,
  { allowedOverrideKeys: allowed, disallowedOverrideKeys: disallowed }: OverrideKeys,
): void {
  for (const keys of [allowed, disallowed]) {
    // A string would be read as its characters: everything would pass as not disallowed.
    if (keys?.some((key) => !Array.isArray(key) || key.length === 0)) {
      throw new TypeError("expected override keys such as [['kubernetes', 'pod_config']]");
    }
  }
  const [outside] = allowed === null || allowed === undefined ? [] : keysOutside(overrides, allowed);
  if (outside !== undefined) {
    const shown = allowed?.map(formatPath).join(', ') || 'none';
    throw new OverrideKeyError(outside, `not in the allowed override keys: ${shown}`);
  }
  for (const key of disallowed ?? []) {
    const touched = touching(base, overrides, key);
    if (touched !== undefined) {
      const shown = disallowed?.map(formatPath).join(', ');
      throw new OverrideKeyError(touched, `in the disallowed override keys: ${shown}`);
    }
  }
}

/** The key if the override sets it, or the path where it replaces a mapping of the base around the key. */
function touching(base: Mapping, overrides: Mapping, key: Key): Key | undefined {
  if (valueAt(overrides, key) !== undefined) {
    return key;
  }
  const replaced = replacedAround(overrides, key);
  return replaced !== undefined && valueAt(base, key) !== undefined ? replaced : undefined;
}
