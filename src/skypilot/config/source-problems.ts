/** Validates a configuration as SkyPilot does: each source by itself, each task, then the merged results. */

import { formatOrigin, type Problem } from '../../base/errors.ts';
import { isAtOrBelow, type Mapping } from '../../base/yaml/tree.ts';
import { merge } from '../../config/merge.ts';
import { validateConfig, validateTask } from '../schema/validate.ts';
import type { TaskSource } from './config-file.ts';
import { SERVER_KEYS, type Source, skypilotRules } from './config-schema.ts';
import { type DroppedKey, formatPlace, type MergedConfig } from './layers.ts';
import { formatKeys } from './permitted-keys.ts';

/** The merged configuration for a task; `task`: `null` = without a task. */
export interface Result {
  readonly task: TaskSource | null;
  readonly merged: MergedConfig;
}

/** Problems of the sources and tasks; if there are none, those of the merged configurations. */
export function configurationProblems(sources: readonly Source[], results: readonly Result[]): Problem[] {
  const problems = [
    ...sourceProblems(sources),
    ...results.flatMap(({ task, merged }) => (task === null ? [] : taskProblems(task, merged))),
  ];
  return problems.length > 0 ? problems : results.flatMap(({ merged }) => mergedProblems(merged));
}

function sourceProblems(sources: readonly Source[]): Problem[] {
  const pairs = sources.filter(isPair);
  // As SkyPilot does: a single pair may be incomplete.
  const together = pairs.reduce<Mapping>((tree, pair) => merge(tree, typedTree(pair), skypilotRules), {});
  return [
    ...sources
      .filter((source) => !isPair(source))
      .flatMap((source) => validateConfig(typedTree(source), source.originOf)),
    ...validateConfig(together, (path) =>
      pairs.findLast(({ tree }) => Object.hasOwn(tree, String(path[0])))?.originOf(path),
    ),
  ];
}

function typedTree({ tree, typed = tree }: Source): Mapping {
  return typed;
}

function isPair({ level, originOf }: Source): boolean {
  return level === 'command line' && originOf([]).kind === 'command line';
}

/** Without problems of keys that the task may not set, which `droppedProblems` reports. */
function taskProblems({ task, originOf }: TaskSource, { dropped }: MergedConfig): Problem[] {
  const reported = new Set(
    dropped.filter(({ reason }) => reason === 'task').map(({ place }) => formatOrigin(place.origin)),
  );
  return validateTask(task.document.typed as Mapping, originOf).filter(
    ({ origin }) => origin === undefined || !reported.has(formatOrigin(origin)),
  );
}

/** With the place of a value at or below each path. */
function mergedProblems({ tree, leaves }: MergedConfig): Problem[] {
  return validateConfig(tree, (path) => leaves.find((leaf) => isAtOrBelow(leaf.path, path))?.source.origin);
}

/**
 * Reports dropped keys as SkyPilot does: it ignores those of a client with one warning, and rejects a task
 * with a key that it may not set. Keys whose loss changes nothing are omitted.
 */
export function droppedProblems(dropped: readonly DroppedKey[]): Problem[] {
  const client = dropped.filter(({ reason }) => reason === 'server' || reason === 'around');
  const [what, verb] = client.length === 1 ? ['key', 'is'] : ['keys', 'are'];
  const named = client.map(({ key, place }) => `${key} (${formatPlace(place)})`).join(', ');
  const message = `${client.length} ${what} that only the server may set ${verb} ignored: ${named}; only the server may set ${formatKeys(SERVER_KEYS)}`;
  return [
    ...(client.length === 0 ? [] : [{ severity: 'warning', message } as const]),
    ...dropped
      .filter(({ reason }) => reason === 'task')
      .map(
        ({ key, place: { origin }, message: why }): Problem => ({
          severity: 'error',
          origin,
          message: `${key}: ${why}`,
        }),
      ),
  ];
}
