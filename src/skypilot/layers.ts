/**
 * SkyPilot's configuration as its sources make it up, with what each of them may not set. Source: SkyPilot docs,
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

/** Lowest first. */
export const LEVELS = ['server', 'user', 'project', 'task', 'command line'] as const;
export type Level = (typeof LEVELS)[number];

/** What one source says. A level may have several: each pair behind `--config` is one. */
export interface Source {
  readonly level: Level;
  readonly tree: Mapping;
  /** Where what stands at a path was written. */
  readonly originOf: (path: Path) => Origin;
}

/** Where a value comes from. */
export interface Place {
  readonly level: Level;
  readonly origin: Origin;
}

/** A key that its source may not set, and that has no effect. */
export interface RefusedKey {
  readonly key: string;
  readonly place: Place;
  /** SkyPilot goes on without a `client` key, and refuses a task with a `task` key as a whole. */
  readonly kind: 'client' | 'task';
}

/** All sources, merged. */
export interface MergedConfig {
  readonly tree: Mapping;
  /** One a value, in order; of a list that may be joined, one an item. */
  readonly leaves: readonly Leaf<Place>[];
  readonly refused: readonly RefusedKey[];
}

/** `user ~/.sky/config.yaml:3` */
export function formatPlace({ level, origin }: Place): string {
  const place = formatOrigin(origin);
  return origin.kind === 'command line' ? place : `${level} ${place}`;
}

/**
 * Lays the sources over each other, the lowest level first. No source is merged twice: that would double every list that is
 * joined.
 *
 * @throws ConfigurationError with the place of what can't be merged.
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
    // One object a place, so that places can be told apart by what they are.
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

/** A list that only ever is replaced has one place, that of its name, so that it is one leaf; where lists are joined each item has its own. */
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
      // Positions in a list that is joined are not those in the source.
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

/** `slurm: null` would take away all that the server has in `slurm`: what is no mapping may not stand above a server's key. */
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

/** Whoever sends back what the server has set, or nothing, overrides nothing; `db` is never spoken of. */
function isOverride(key: Key, tree: Mapping, server: Mapping): boolean {
  const value = valueAt(tree, key);
  return key[0] !== 'db' && value !== null && !isDeepStrictEqual(value, valueAt(server, key));
}

/** What a task says of its configuration, and what is wrong with how it says it. */
export interface TaskConfig {
  readonly tree: Mapping;
  /** Where in the task it stands. */
  readonly at: Path;
  readonly problems: readonly Problem[];
}

/** `config`, or its old name `experimental.config_overrides`, or what SkyPilot has made of them within `resources`. */
export function taskConfig(task: Mapping, originOf: Source['originOf']): TaskConfig {
  const problems: Problem[] = [];
  const report = (severity: Problem['severity'], path: Path, message: string) =>
    problems.push({ severity, origin: originOf(path), message: `${formatPath(path)}: ${message}` });

  const { experimental = null } = task;
  if (isMapping(experimental)) {
    for (const name of Object.keys(experimental).filter((one) => one !== 'config_overrides')) {
      report('error', ['experimental', name], 'expected nothing but config_overrides there');
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
    const message = own?.tree === undefined ? 'it is called config now' : 'it has no effect beside config';
    report('warning', old.path, message);
  }
  const written = own?.tree === undefined ? old : own;
  if (written?.tree !== undefined && made?.tree !== undefined) {
    report('error', made.path, `expected it not beside ${formatPath(written.path)}`);
  }
  const { path: at = [], tree = {} } = (written?.tree === undefined ? made : written) ?? {};
  if (!isMapping(tree)) {
    report('error', at, 'expected a mapping');
    return { tree: {}, at, problems };
  }
  return { tree, at, problems };
}

/** That the workspace that is chosen does not exist, if so. */
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
    message: `active_workspace: expected default or one of the workspaces of the server, got ${showText(active)}`,
  };
}
