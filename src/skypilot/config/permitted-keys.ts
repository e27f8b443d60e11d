/**
 * Removes what a source of a SkyPilot configuration may not set, and says why. Stricter than SkyPilot where its server would
 * take a key from a client: `admin_policy`, `rbac`, and a value in place of the mapping around a key of the server.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Key, keysOutside, withoutKeys } from '../../config/permissions.ts';
import { formatPath, isMapping, type Mapping, type Path, valueAt } from '../../yaml/tree.ts';
import { CLIENT_KEYS, SERVER_KEYS, TASK_KEYS } from './config-schema.ts';
import type { Level } from './levels.ts';

/**
 * Why a key has no effect. Nothing is lost by `null`, `same`, `client` and `database`; SkyPilot rejects a task with a `task`
 * key.
 */
export type DropReason = 'server' | 'around' | 'null' | 'same' | 'client' | 'database' | 'task';

/** A key that has no effect. */
export interface Dropped {
  readonly path: Path;
  readonly reason: DropReason;
  /** Names keys, never values. */
  readonly message: string;
}

export interface PermittedTree {
  readonly tree: Mapping;
  readonly dropped: readonly Dropped[];
}

/** SkyPilot takes it out of every configuration, as it holds a password. */
const DATABASE: Key = ['db'];

const MESSAGES: Readonly<Record<Exclude<DropReason, 'task' | 'around'>, string>> = {
  server: 'only the server may set this key, and it has another value or none',
  null: 'only the server may set this key, and null sets nothing',
  same: 'only the server may set this key, and it has the same value',
  client: 'the client uses it itself, and does not send it to the server',
  database: 'SkyPilot takes the database out of every configuration',
};

/** What of a source takes effect. `server`: the configuration of the server. */
export function permittedTree(level: Level, tree: Mapping, server: Mapping): PermittedTree {
  switch (level) {
    case 'server':
      return withoutDatabase(tree);
    case 'task':
      return ofTask(tree);
    default:
      return ofClient(tree, server);
  }
}

function withoutDatabase(tree: Mapping): PermittedTree {
  const { tree: rest, taken } = withoutKeys(tree, [DATABASE]);
  return { tree: rest, dropped: taken.map((path) => dropped(path, 'database')) };
}

function ofTask(tree: Mapping): PermittedTree {
  const outside = keysOutside(tree, TASK_KEYS);
  return {
    tree: withoutKeys(tree, outside as Key[]).tree,
    dropped: outside.map((path) => {
      const allowed = formatKeys(keysBelow(path.slice(0, -1), TASK_KEYS));
      return { path, reason: 'task', message: `a task may not set this key; it may set ${allowed}` };
    }),
  };
}

function ofClient(tree: Mapping, server: Mapping): PermittedTree {
  const { tree: rest, taken } = withoutKeys(tree, SERVER_KEYS);
  const around = serverKeysReplaced(rest, server);
  return {
    tree: withoutKeys(rest, around).tree,
    dropped: [
      ...taken.map((key) => dropped(key, reasonOf(key, tree, server))),
      ...around.map((path): Dropped => {
        const keys = formatKeys(keysBelow(path, serverKeysOf(server)));
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

/** `slurm: null` would delete everything that the server has in `slurm`, so only a mapping may contain a server key. */
function serverKeysReplaced(tree: Mapping, server: Mapping): Key[] {
  const above = serverKeysOf(server).flatMap((key) =>
    key.slice(1).map((_, index) => key.slice(0, index + 1)),
  );
  const unique = new Map(above.map((key) => [formatPath(key), key]));
  return [...unique.values()].filter((key) => {
    const value = valueAt(tree, key);
    return value !== undefined && !isMapping(value);
  });
}

function serverKeysOf(server: Mapping): Key[] {
  return SERVER_KEYS.filter((key) => valueAt(server, key) !== undefined);
}

/** A path with keys below it is never below one of them. */
function keysBelow(path: Path, keys: readonly Key[]): Key[] {
  return keys.filter((key) => path.every((step, index) => key[index] === step));
}

/** `kubernetes.dws, kubernetes.kueue` */
export function formatKeys(keys: readonly Key[]): string {
  return keys.map(formatPath).join(', ');
}
