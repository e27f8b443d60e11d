/** Prepares merged sources for `effectiveValueOf`. */
import { isMapping, type Path } from '../../../yaml/tree.ts';
import { skypilotRules, TASK_KEYS } from '../config-schema.ts';
import type { MergedConfig, Place } from '../layers.ts';
import { combined, NOTHING, partOf, placedAt, type Traced } from './traced.ts';

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
 * What SkyPilot passes as overrides of a task: its `config`, over which it merges those keys of `--config` that a task
 * may set. `null` removes an override.
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
