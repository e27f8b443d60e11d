/** Effective values for policies. */
import { isDeepStrictEqual } from 'node:util';
import { isMapping, type Mapping, plainCopy } from '../../../base/yaml/tree.ts';
import { MergeError } from '../../../config/merge.ts';
import { PolicyRejected } from '../../admin-policy.ts';
import type { Task, UserRequest } from '../../request/user-request.ts';
import { resourcesOf } from '../../task/resources.ts';
import { Config } from '../config.ts';
import { taskConfigsOf } from '../task-configs.ts';
import { effectiveValueOf } from './effective-value.ts';
import { workspaceOf } from './question.ts';
import { NOTHING, taskOverrides } from './traced.ts';

/** A key, and the place for which its value is wanted. */
export interface EffectiveQuestion {
  /** `['kubernetes', 'pod_config']`. A section, such as `['kubernetes']`, returns values of all its keys. */
  readonly key: readonly string[];
  /** Kubernetes context, SSH node pool, region of a cloud, or Slurm cluster. Default: the general value. */
  readonly region?: string;
  /** The Slurm partition. */
  readonly zone?: string;
  /** Default: `active_workspace` of the configuration, otherwise `default`. */
  readonly workspace?: string;
  /** The `config` of the task. Default: none. */
  readonly overrides?: Mapping;
}

/**
 * The effective value of a key: SkyPilot searches the context or region, the workspace, and the `config` of
 * the task, in an order that depends on the key. `undefined` = nothing is set: SkyPilot's own default
 * applies.
 *
 * @throws PolicyRejected if the values cannot be merged: SkyPilot would fail, too
 */
export function effectiveValue(
  config: Config | Mapping,
  { key, region, zone, workspace, overrides }: EffectiveQuestion,
): unknown {
  const tree = config instanceof Config ? config.toDict() : plainCopy(config);
  const own = overrides === undefined ? undefined : { value: plainCopy(overrides), leaves: [] };
  const reading = {
    config: { value: tree, leaves: [] },
    task: taskOverrides(own, NOTHING),
    workspace: workspace ?? workspaceOf(tree),
    region,
    zone,
  };
  try {
    return effectiveValueOf(reading, key).value;
  } catch (thrown) {
    if (thrown instanceof MergeError) {
      throw new PolicyRejected(`The values of ${key.join('.')} cannot be merged: ${thrown.message}.`);
    }
    throw thrown;
  }
}

/**
 * The values for a request: one for each `config` of an alternative of the task, equal ones once. A policy
 * that limits a value must check all of them.
 *
 * @throws PolicyRejected as `effectiveValue`, and if the task has an unreadable form
 */
export function effectiveValues(
  { task, skypilotConfig }: Pick<UserRequest, 'task' | 'skypilotConfig'>,
  question: Omit<EffectiveQuestion, 'overrides'>,
): unknown[] {
  const values: unknown[] = [];
  for (const overrides of overridesOf(task)) {
    const value = effectiveValue(skypilotConfig, { ...question, overrides });
    if (!values.some((other) => isDeepStrictEqual(other, value))) {
      values.push(value);
    }
  }
  return values;
}

/** Overrides of each alternative, equal ones once. SkyPilot refuses tasks with several kinds: each counts. */
function overridesOf(task: Task): Mapping[] {
  // Refuses values that are not mappings.
  taskConfigsOf(task);
  const { hooks: _, ...own } = mappingOf(task.config);
  const written = [
    own,
    mappingOf(mappingOf(task.experimental).config_overrides),
    mappingOf(task._cluster_config_overrides),
  ];
  const found: Mapping[] = [];
  for (const resources of resourcesOf(task)) {
    const given = [...written, mappingOf(resources._cluster_config_overrides)].filter(
      (one) => Object.keys(one).length > 0,
    );
    for (const one of given.length === 0 ? [{}] : given) {
      if (!found.some((other) => isDeepStrictEqual(other, one))) {
        found.push(one);
      }
    }
  }
  return found;
}

const mappingOf = (value: unknown): Mapping => (isMapping(value) ? value : {});
