/** Values of a configuration with the source of each leaf, through any number of merges. */

import { isAtOrBelow, isMapping, type Mapping, nested, type Path, valueAt } from '../../../base/yaml/tree.ts';
import { type Leaf, MergeError, type MergeSchema, merge, Provenance } from '../../../config/merge.ts';
import { skypilotRules, TASK_KEYS } from '../config-schema.ts';
import type { MergedConfig, Place } from '../layers.ts';

/**
 * A value, and its leaves with paths relative to it. `value`: `undefined` = nothing is set. Without leaves,
 * values are merged without their sources, which is faster.
 */
export interface Traced<Source> {
  readonly value: unknown;
  readonly leaves: readonly Leaf<Source>[];
}

export const NOTHING: Traced<never> = { value: undefined, leaves: [] };

/** Whether SkyPilot treats the value as set: where it has other places to look, `null` means not set. */
export function isGiven({ value }: Traced<unknown>): boolean {
  return value !== undefined && value !== null;
}

export function partOf<Source>(traced: Traced<Source>, path: readonly string[]): Traced<Source> {
  const value = valueAt(traced.value, path);
  return value === undefined ? NOTHING : { value, leaves: leavesBelow(traced.leaves, path) };
}

/** The leaves below a path, relative to it. */
export function leavesBelow<Source>(leaves: readonly Leaf<Source>[], path: Path): Leaf<Source>[] {
  return leaves
    .filter((leaf) => isAtOrBelow(leaf.path, path))
    .map((leaf) => ({ ...leaf, path: leaf.path.slice(path.length) }));
}

/** The reverse of `partOf`. */
export function placedAt<Source>(traced: Traced<Source>, path: readonly string[]): Traced<Source> {
  return {
    value: nested(path, traced.value),
    leaves: traced.leaves.map((leaf) => ({ ...leaf, path: [...path, ...leaf.path] })),
  };
}

/** The winner; its leaves beat those of the loser that are at, above or below them. */
export function over<Source>(winner: Traced<Source>, loser: Traced<Source>): Traced<Source> {
  const leaves = winner.leaves.map((leaf) => {
    const beaten = loser.leaves.filter(
      ({ path }) => isAtOrBelow(path, leaf.path) || isAtOrBelow(leaf.path, path),
    );
    return beating(leaf, beaten);
  });
  return { value: winner.value, leaves };
}

/** A value that cannot be merged, with the source that set it, if known. */
export class TracedMergeError<Source> extends MergeError {
  readonly source: Source | undefined;

  constructor({ path, expectation }: MergeError, source: Source | undefined) {
    super(path, expectation);
    this.source = source;
  }
}

/**
 * Merges one mapping over another. If one is not a mapping, the overlay wins, unless it is not given.
 *
 * @throws TracedMergeError as `merge`
 */
export function combined<Source>(
  base: Traced<Source>,
  overlay: Traced<Source>,
  schema: MergeSchema,
): Traced<Source> {
  if (!isMapping(base.value) || !isMapping(overlay.value)) {
    return isGiven(overlay) ? overlay : base;
  }
  if (Object.keys(overlay.value).length === 0) {
    return base;
  }
  if (Object.keys(base.value).length === 0) {
    return overlay;
  }
  if (base.leaves.length === 0 && overlay.leaves.length === 0) {
    return { value: merge(base.value, overlay.value, schema), leaves: [] };
  }
  try {
    return mergedWithLeaves(base, base.value, overlay, overlay.value, schema);
  } catch (thrown) {
    if (thrown instanceof MergeError) {
      const known = thrown.pathInOverlay;
      throw new TracedMergeError(
        thrown,
        overlay.leaves.find((leaf) => isAtOrBelow(leaf.path, known))?.source,
      );
    }
    throw thrown;
  }
}

function mergedWithLeaves<Source>(
  base: Traced<Source>,
  baseValue: Mapping,
  overlay: Traced<Source>,
  overlayValue: Mapping,
  schema: MergeSchema,
): Traced<Source> {
  const provenance = new Provenance<Leaf<Source>>();
  provenance.placed([], baseValue, leafFinder(base.leaves));
  const inOverlay = leafFinder(overlay.leaves);
  const value = merge(baseValue, overlayValue, schema, (path, from, placed) =>
    provenance.placed(path, placed, (below) => inOverlay([...from, ...below])),
  );
  const leaves = provenance
    .leaves(value)
    .map(({ path, value: own, source, beats }) =>
      beating({ path, value: own, source: source.source, beats: source.beats }, beats),
    );
  return { value, leaves };
}

/** A member of the overlay replaces the same member of the base as a whole. */
export function updated<Source>(base: Traced<Source>, overlay: Traced<Source>): Traced<Source> {
  if (!isMapping(base.value) || !isMapping(overlay.value)) {
    return isGiven(overlay) ? overlay : base;
  }
  const value: Mapping = { ...base.value, ...overlay.value };
  const names = Object.keys(value);
  const parts = names.map((name) => {
    const own = partOf(overlay, [name]);
    const before = partOf(base, [name]);
    return placedAt(own.value === undefined ? before : over(own, before), [name]);
  });
  return { value, leaves: parts.flatMap(({ leaves }) => leaves) };
}

function beating<Source>(leaf: Leaf<Source>, beaten: readonly Leaf<Source>[]): Leaf<Source> {
  const beats = new Set([
    ...leaf.beats,
    ...beaten.flatMap(({ source, beats: before }) => [source, ...before]),
  ]);
  beats.delete(leaf.source);
  return { ...leaf, beats: [...beats] };
}

/** Finds the leaf at a path, or the leaf that contains it. */
function leafFinder<Source>(leaves: readonly Leaf<Source>[]): (path: Path) => Leaf<Source> {
  const byPath = new Map(leaves.map((leaf) => [keyOf(leaf.path), leaf]));
  return (path) => {
    for (let length = path.length; length >= 0; length -= 1) {
      const leaf = byPath.get(keyOf(path.slice(0, length)));
      if (leaf !== undefined) {
        return leaf;
      }
    }
    throw new TypeError('a value has no source');
  };
}

const keyOf = (path: Path) => JSON.stringify(path);

/** Where a leaf was written. */
export interface LeafSource {
  /** In `config` of the task, or in the configuration. */
  readonly where: 'task' | 'configuration';
  /** Its path there. */
  readonly key: Path;
  readonly place: Place;
}

/** The merged configuration without the task. */
export function tracedConfig(
  { tree, leaves }: MergedConfig,
  where: LeafSource['where'] = 'configuration',
): Traced<LeafSource> {
  return {
    value: tree,
    // One object for each leaf, so that leaves on the same line stay distinct.
    leaves: leaves.map((leaf) => {
      const source = (place: Place): LeafSource => ({ where, key: leaf.path, place });
      return { ...leaf, source: source(leaf.source), beats: leaf.beats.map(source) };
    }),
  };
}

/**
 * The overrides that SkyPilot passes for a task: its `config`, with those keys of `--config` merged over it
 * that a task may set. `null` removes an override.
 */
export function taskOverrides<Source>(
  task: Traced<Source> | undefined,
  commandLine: Traced<Source>,
): Traced<Source> {
  let overrides: Traced<Source> =
    task !== undefined && isMapping(task.value) ? task : { value: {}, leaves: [] };
  for (const key of TASK_KEYS) {
    const own = partOf(commandLine, key);
    if (own.value !== undefined) {
      overrides = combined(overrides, placedAt(own, key), skypilotRules);
    }
  }
  for (const key of TASK_KEYS) {
    if (partOf(overrides, key).value === null) {
      overrides = without(overrides, key);
    }
  }
  return isMapping(overrides.value) && Object.keys(overrides.value).length === 0 ? NOTHING : overrides;
}

/** Without a key. The mappings around it stay. */
function without<Source>(traced: Traced<Source>, [name = '', ...below]: readonly string[]): Traced<Source> {
  if (!isMapping(traced.value)) {
    return traced;
  }
  const { [name]: _, ...rest } = traced.value;
  const leaves = traced.leaves.filter(({ path }) => path[0] !== name);
  if (below.length === 0) {
    return { value: rest, leaves };
  }
  const part = placedAt(without(partOf(traced, [name]), below), [name]);
  return combined({ value: rest, leaves }, part, skypilotRules);
}
