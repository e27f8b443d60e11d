/**
 * SkyPilot's configuration as its sources make it up, with what each of them may not set. Source: SkyPilot docs,
 * "Configuration Sources and Overrides", and the behaviour of SkyPilot 0.13.
 */
import { isDeepStrictEqual } from 'node:util';
import { merge } from '../config/merge.ts';
import { type Key, keysOutside, withoutKeys } from '../config/permissions.ts';
import { type Leaf, Provenance } from '../config/provenance.ts';
import { formatPath, isMapping, type Mapping, type Path, valueAt } from '../config/tree.ts';
import { formatOrigin, type Origin } from '../errors.ts';
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
  /** One a value, in order; where lists were joined, one an item. */
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
 * @throws MergeError with the path of what can't be merged.
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
      const origin = originOf(path);
      const id = formatOrigin(origin);
      const place = places.get(id) ?? { level, origin };
      places.set(id, place);
      return place;
    };
    const permitted = permittedTree(source, server);
    refused.push(
      ...permitted.refused.map(({ path, kind }) => ({ key: formatPath(path), place: placeOf(path), kind })),
    );
    return merge(base, permitted.tree, skypilotRules, (path, from, value) =>
      provenance.placed(path, value, (below) => placeOf([...from, ...below])),
    );
  }, {});
  return { tree, leaves: provenance.leaves(tree), refused };
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
  return {
    tree: rest,
    refused: taken.filter((key) => isOverride(key, tree, server)).map((path) => ({ path, kind: 'client' })),
  };
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
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** `config`, or its old name `experimental.config_overrides`, or what SkyPilot has made of them within `resources`. */
export function taskConfig(task: Mapping): TaskConfig {
  const experimental = isMapping(task.experimental) ? task.experimental : {};
  const errors = Object.keys(experimental)
    .filter((name) => name !== 'config_overrides')
    .map((name) => `experimental.${name}: expected nothing but config_overrides there`);
  const warnings: string[] = [];
  const places: Path[] = [
    ['config'],
    ['experimental', 'config_overrides'],
    ['resources', '_cluster_config_overrides'],
  ].filter((path) => valueAt(task, path) !== undefined && valueAt(task, path) !== null);
  const [at = ['config']] = places;
  if (at[0] === 'experimental') {
    warnings.push('experimental.config_overrides is called config now');
  } else if (at[0] === 'config' && places.some(([first]) => first === 'experimental')) {
    warnings.push('experimental.config_overrides has no effect beside config');
  }
  if (at[0] !== 'resources' && places.some(([first]) => first === 'resources')) {
    errors.push(`${formatPath(at)}: expected it not beside resources._cluster_config_overrides`);
  }
  const tree = valueAt(task, at) ?? {};
  if (!isMapping(tree)) {
    return { tree: {}, at, errors: [...errors, `${formatPath(at)}: expected a mapping`], warnings };
  }
  return { tree, at, errors, warnings };
}

/** What is wrong with the workspace that is chosen, if anything is. */
export function workspaceProblem(merged: Mapping): string | undefined {
  const { active_workspace: active, workspaces } = merged;
  if (active === undefined || active === null || active === 'default') {
    return undefined;
  }
  const isKnown = typeof active === 'string' && isMapping(workspaces) && Object.hasOwn(workspaces, active);
  return isKnown ? undefined : 'active_workspace: expected default or one of the workspaces of the server';
}
