/**
 * The places of a task that override SkyPilot's configuration: `config` as users write it, its old name
 * `experimental.config_overrides`, and `_cluster_config_overrides` of each alternative, as SkyPilot sends it.
 */
import { isMapping, type Mapping } from '../../base/yaml/tree.ts';
import { PolicyRejected } from '../admin-policy.ts';
import type { Task } from '../request/user-request.ts';

export interface TaskConfig {
  /** Without `hooks`, which belong to the task although users write them in its `config`. */
  readonly config: Mapping;
  /** Replaces it in the task. */
  readonly replace: (config: Mapping) => void;
}

type Holder = { [name: string]: unknown };

/**
 * All configurations of a task, in every alternative.
 *
 * @throws PolicyRejected if one of them, or its parent, has another form
 */
export function taskConfigsOf(task: Task): TaskConfig[] {
  const resources = mappingOf(task.resources, 'resources');
  const alternatives = (['any_of', 'ordered'] as const).flatMap((name) => {
    const list = resources?.[name] ?? [];
    if (!Array.isArray(list)) {
      throw unreadable(`resources.${name}`, 'a list');
    }
    return list.map((one) => mappingOf(one, `resources.${name}`));
  });
  return [
    ownConfigOf(task),
    configAt(task, '_cluster_config_overrides'),
    configAt(mappingOf(task.experimental, 'experimental'), 'config_overrides'),
    ...[resources, ...alternatives].map((one) => configAt(one, '_cluster_config_overrides')),
  ].filter((one) => one !== undefined);
}

function ownConfigOf(task: Task): TaskConfig | undefined {
  const { hooks, ...config } = mappingOf(task.config, 'config') ?? {};
  if (hooks === undefined) {
    return configAt(task, 'config');
  }
  return {
    config,
    replace: (changed) => {
      task.config = { ...changed, hooks };
    },
  };
}

function configAt(holder: Holder | undefined, name: string): TaskConfig | undefined {
  const config = mappingOf(holder?.[name], name);
  if (holder === undefined || config === undefined) {
    return undefined;
  }
  return {
    config,
    replace: (changed) => {
      holder[name] = changed;
    },
  };
}

function mappingOf(value: unknown, name: string): Holder | undefined {
  if (value === undefined || value === null) {
    return undefined;
  }
  if (!isMapping(value)) {
    throw unreadable(name, 'a mapping');
  }
  return value as Holder;
}

/** Why a task is refused that has something else there. */
export function unreadable(name: string, expected: string): PolicyRejected {
  return new PolicyRejected(`${name} of the task: expected ${expected}.`);
}
