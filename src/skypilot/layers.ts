/**
 * Merges the sources of a SkyPilot configuration and finds keys that a source may not set. Source: SkyPilot docs,
 * "Configuration Sources and Overrides", and the behaviour of SkyPilot 0.13.
 */
import { isDeepStrictEqual } from 'node:util';
import { MergeError, merge, type Placed } from '../config/merge.ts';
import { type Key, keysOutside, withoutKeys } from '../config/permissions.ts';
import { type Leaf, Provenance } from '../config/provenance.ts';
import { showText } from '../config/secret.ts';
import { ConfigurationError, formatOrigin, type Origin, type Problem } from '../errors.ts';
import { formatPath, isMapping, type Mapping, type Path, valueAt } from '../yaml/tree.ts';
import { SERVER_KEYS, skypilotRules, TASK_KEYS } from './config-schema.ts';

/** Lowest precedence first. */
export const LEVELS = ['server', 'user', 'project', 'task', 'command line'] as const;
export type Level = (typeof LEVELS)[number];

/** The content of one source. A level may have several: each `--config key=value` is one. */
export interface Source {
  readonly level: Level;
  readonly tree: Mapping;
  /** The file and line of the value at a path. */
  readonly originOf: (path: Path) => Origin;
}

/** The source and position of a value. */
export interface Place {
  readonly level: Level;
  readonly origin: Origin;
}

/** A key that its source may not set. It has no effect. */
export interface RefusedKey {
  readonly key: string;
  readonly place: Place;
  /** SkyPilot ignores a `client` key, but rejects a task with a `task` key. */
  readonly kind: 'client' | 'task';
}

/** The merged sources. */
export interface MergedConfig {
  readonly tree: Mapping;
  /** One entry per value, in order; for concatenated lists one per item. */
  readonly leaves: readonly Leaf<Place>[];
  readonly refused: readonly RefusedKey[];
}

/** `user ~/.sky/config.yaml:3` */
export function formatPlace({ level, origin }: Place): string {
  const place = formatOrigin(origin);
  return origin.kind === 'command line' ? place : `${level} ${place}`;
}

/**
 * Merges the sources, lowest level first. Pass each source once: merging it twice would duplicate list items.
 *
 * @throws ConfigurationError with the position of what cannot be merged
 */
export function mergeSources(sources: readonly Source[]): MergedConfig {
  const provenance = new Provenance<Place>();
  const refused: RefusedKey[] = [];
  const inOrder = [...sources].sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
  const server = inOrder
    .filter(({ level }) => level === 'server')
    .reduce<Mapping>((base, { tree }) => merge(base, tree, skypilotRules), {});

  const tree = inOrder.reduce<Mapping>((base, source) => {
    const { level, originOf } = source;
    // Interned, so that places can be compared by identity.
    const places = new Map<string, Place>();
    const placeOf = (path: Path): Place => {
      const origin = originOf(placedAs(path));
      const id = formatOrigin(origin);
      const place = places.get(id) ?? { level, origin };
      places.set(id, place);
      return place;
    };
    const permitted = permittedTree(source, server);
    refused.push(
      ...permitted.refused.map(({ path, kind }) => ({ key: formatPath(path), place: placeOf(path), kind })),
    );
    return mergeSource(base, permitted.tree, originOf, (path, from, value) =>
      provenance.placed(path, value, (below) => placeOf([...from, ...below])),
    );
  }, {});
  return { tree, leaves: provenance.leaves(tree), refused };
}

/**
 * A list that is always replaced is one leaf and has the position of its key. In concatenated lists each item has its
 * own.
 */
function placedAs(path: Path): Path {
  let rules = skypilotRules;
  for (const [index, step] of path.entries()) {
    if (typeof step === 'number') {
      continue;
    }
    if (typeof path[index + 1] === 'number' && rules.list(step).kind === 'replace') {
      return path.slice(0, index + 1);
    }
    rules = rules.member(step);
  }
  return path;
}

function mergeSource(base: Mapping, tree: Mapping, originOf: Source['originOf'], placed: Placed): Mapping {
  try {
    return merge(base, tree, skypilotRules, placed);
  } catch (thrown) {
    if (thrown instanceof MergeError) {
      // Positions in a concatenated list differ from those in the source.
      const list = thrown.path.findIndex((step) => typeof step === 'number');
      const origin = originOf(list === -1 ? thrown.path : thrown.path.slice(0, list));
      throw new ConfigurationError([{ severity: 'error', origin, message: thrown.message }]);
    }
    throw thrown;
  }
}

function permittedTree(
  { level, tree }: Source,
  server: Mapping,
): { tree: Mapping; refused: { path: Path; kind: RefusedKey['kind'] }[] } {
  if (level === 'server') {
    return { tree, refused: [] };
  }
  if (level === 'task') {
    const outside = keysOutside(tree, TASK_KEYS);
    return {
      tree: withoutKeys(tree, outside as Key[]).tree,
      refused: outside.map((path) => ({ path, kind: 'task' })),
    };
  }
  const { tree: rest, taken } = withoutKeys(tree, SERVER_KEYS);
  const replacing = serverKeysReplaced(rest, server);
  const named = [...taken.filter((key) => isOverride(key, tree, server)), ...replacing];
  return {
    tree: withoutKeys(rest, replacing).tree,
    refused: named.map((path) => ({ path, kind: 'client' })),
  };
}

/** `slurm: null` would delete everything that the server has in `slurm`, so only a mapping may contain a server key. */
function serverKeysReplaced(tree: Mapping, server: Mapping): Key[] {
  const above = SERVER_KEYS.filter((key) => valueAt(server, key) !== undefined).flatMap((key) =>
    key.slice(1).map((_, index) => key.slice(0, index + 1)),
  );
  const unique = new Map(above.map((key) => [formatPath(key), key]));
  return [...unique.values()].filter((key) => {
    const value = valueAt(tree, key);
    return value !== undefined && !isMapping(value);
  });
}

/** Setting what the server has, or nothing, is no override. `db` is always skipped. */
function isOverride(key: Key, tree: Mapping, server: Mapping): boolean {
  const value = valueAt(tree, key);
  return key[0] !== 'db' && value !== null && !isDeepStrictEqual(value, valueAt(server, key));
}

/** The configuration in a task, and problems with it. */
export interface TaskConfig {
  readonly tree: Mapping;
  /** Its path in the task. */
  readonly at: Path;
  readonly problems: readonly Problem[];
}

/** Reads `config`, its old name `experimental.config_overrides`, or what SkyPilot turned them into within `resources`. */
export function taskConfig(task: Mapping, originOf: Source['originOf']): TaskConfig {
  const problems: Problem[] = [];
  const report = (severity: Problem['severity'], path: Path, message: string) =>
    problems.push({ severity, origin: originOf(path), message: `${formatPath(path)}: ${message}` });

  const { experimental = null } = task;
  if (isMapping(experimental)) {
    for (const name of Object.keys(experimental).filter((one) => one !== 'config_overrides')) {
      report('error', ['experimental', name], 'expected only config_overrides here');
    }
  } else if (experimental !== null) {
    report('error', ['experimental'], 'expected a mapping');
  }

  const [own, old, made] = [
    ['config'],
    ['experimental', 'config_overrides'],
    ['resources', '_cluster_config_overrides'],
  ].map((path) => ({ path, tree: valueAt(task, path) ?? undefined }));
  if (old?.tree !== undefined) {
    const message = own?.tree === undefined ? 'deprecated: use config' : 'ignored, because config is set';
    report('warning', old.path, message);
  }
  const written = own?.tree === undefined ? old : own;
  if (written?.tree !== undefined && made?.tree !== undefined) {
    report('error', made.path, `cannot be combined with ${formatPath(written.path)}`);
  }
  const { path: at = [], tree = {} } = (written?.tree === undefined ? made : written) ?? {};
  if (!isMapping(tree)) {
    report('error', at, 'expected a mapping');
    return { tree: {}, at, problems };
  }
  return { tree, at, problems };
}

/** The problem if the selected workspace does not exist. */
export function workspaceProblem({ tree, leaves }: MergedConfig): Problem | undefined {
  const { active_workspace: active, workspaces } = tree;
  if (active === undefined || active === null || active === 'default') {
    return undefined;
  }
  if (typeof active === 'string' && isMapping(workspaces) && Object.hasOwn(workspaces, active)) {
    return undefined;
  }
  const source = leaves.find(({ path: [name] }) => name === 'active_workspace')?.source;
  return {
    severity: 'error',
    origin: source?.origin,
    message: `active_workspace: expected default or a workspace of the server, got ${showText(active)}`,
  };
}
