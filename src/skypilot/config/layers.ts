/**
 * Merges the sources of a SkyPilot configuration and finds keys that a source may not set. Source: SkyPilot
 * docs, "Configuration Sources and Overrides", and the behaviour of SkyPilot 0.13.
 */

import { ConfigurationError, formatOrigin, type Problem } from '../../base/errors.ts';
import { formatPath, isMapping, type Mapping, type Path } from '../../base/yaml/tree.ts';
import { type Leaf, MergeError, merge, type Placed, Provenance } from '../../config/merge.ts';
import { showText } from '../../config/secret.ts';
import { LEVELS, type Place, type Source, skypilotRules } from './config-schema.ts';
import { type DropReason, permittedTree } from './permitted-keys.ts';

export { formatPlace, LEVELS, type Level, type Place, type Source } from './config-schema.ts';

/** A key that has no effect: its source may not set it. */
export interface DroppedKey {
  readonly key: string;
  readonly place: Place;
  readonly reason: DropReason;
  readonly message: string;
}

export interface MergedConfig {
  readonly tree: Mapping;
  /** One entry per value, in order; for concatenated lists one per item. */
  readonly leaves: readonly Leaf<Place>[];
  readonly dropped: readonly DroppedKey[];
}

/**
 * Merges the sources, lowest level first. Pass each source once: merging it twice would duplicate list items.
 *
 * @throws ConfigurationError with the position of values that cannot be merged
 */
export function mergeSources(sources: readonly Source[]): MergedConfig {
  const provenance = new Provenance<Place>();
  const dropped: DroppedKey[] = [];
  const inOrder = [...sources].sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
  const server = inOrder
    .filter(({ level }) => level === 'server')
    .reduce<Mapping>((base, { tree }) => merge(base, tree, skypilotRules), {});

  const tree = inOrder.reduce<Mapping>((base, source) => {
    const { level, name, originOf } = source;
    // Interned, so that places can be compared by identity.
    const places = new Map<string, Place>();
    const placeOf = (path: Path): Place => {
      const origin = originOf(placedAs(path));
      const id = formatOrigin(origin);
      const place = places.get(id) ?? { level, ...(name !== undefined && { name }), origin };
      places.set(id, place);
      return place;
    };
    const permitted = permittedTree(level, source.tree, server);
    dropped.push(
      ...permitted.dropped.map(({ path, ...why }) => ({
        key: formatPath(path),
        place: placeOf(path),
        ...why,
      })),
    );
    return mergeSource(base, permitted.tree, originOf, (path, from, value) =>
      provenance.placed(path, value, (below) => placeOf([...from, ...below])),
    );
  }, {});
  return { tree, leaves: provenance.leaves(tree), dropped };
}

/**
 * A list that is always replaced is one leaf with the position of its key. In concatenated lists, each item
 * has its own position.
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
      const origin = originOf(thrown.pathInOverlay);
      throw new ConfigurationError([{ severity: 'error', origin, message: thrown.message }]);
    }
    throw thrown;
  }
}

/** A problem if the selected workspace does not exist. */
export function workspaceProblems({ tree, leaves }: MergedConfig): Problem[] {
  const { active_workspace: active, workspaces } = tree;
  if (active === undefined || active === null || active === 'default') {
    return [];
  }
  if (typeof active === 'string' && isMapping(workspaces) && Object.hasOwn(workspaces, active)) {
    return [];
  }
  const source = leaves.find(({ path: [name] }) => name === 'active_workspace')?.source;
  return [
    {
      severity: 'error',
      origin: source?.origin,
      message: `active_workspace: expected default or a workspace of the server, got ${showText(active)}`,
    },
  ];
}
