/** Labels for everything that SkyPilot creates in Kubernetes. */
import { z } from 'zod';
import { isMapping } from '../../base/yaml/tree.ts';
import { Config } from '../config/config.ts';
import { taskConfigsOf } from '../config/task-configs.ts';
import type { UserRequest } from '../request/user-request.ts';

/** A Kubernetes label name: at most 63 characters, with an optional domain prefix. */
const NAME = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

/** SkyPilot's sections for Kubernetes: its clusters, and machines that SkyPilot turns into one. */
const CLOUDS = ['kubernetes', 'ssh'];

type Labels = Readonly<Record<string, string>>;

/** An option of labels, as pairs of `label:value`. Default: `app:skypilot`. */
export function kubernetesLabels(description: string) {
  return z.record(z.string().regex(NAME), z.string().regex(VALUE)).default({ app: 'skypilot' }).meta({
    description,
    pairs: 'label:value',
    expected: 'comma-separated label:value pairs with names and values that Kubernetes accepts',
  });
}

/**
 * Sets labels in the general metadata of `clouds`, and wherever else metadata is set, because it would
 * override the general one: in the configuration of a context and of a task. Replaces values there that are
 * not mappings: SkyPilot could not read them.
 *
 * @throws PolicyRejected if a configuration of the task is not a mapping
 */
export function labelKubernetes(
  { task, skypilotConfig }: Pick<UserRequest, 'task' | 'skypilotConfig'>,
  labels: Labels,
  clouds: readonly string[],
): void {
  for (const cloud of clouds) {
    label(skypilotConfig, [cloud, 'custom_metadata'], labels);
  }
  labelMetadata(skypilotConfig, labels);
  for (const { config, replace } of taskConfigsOf(task)) {
    const changed = Config.fromDict(config);
    labelMetadata(changed, labels);
    replace(changed.toDict());
  }
}

function labelMetadata(config: Config, labels: Labels): void {
  for (const cloud of CLOUDS) {
    const contexts = config.getNested([cloud, 'context_configs']);
    const named = Object.keys(isMapping(contexts) ? contexts : {}).map((name) => ['context_configs', name]);
    for (const path of [[], ...named]) {
      const metadata = [cloud, ...path, 'custom_metadata'];
      if (config.getNested(metadata) !== undefined) {
        label(config, metadata, labels);
      }
    }
  }
}

function label(config: Config, metadata: readonly string[], labels: Labels): void {
  const own = config.getNested([...metadata, 'labels']);
  config.assign([...metadata, 'labels'], { ...(isMapping(own) ? own : {}), ...labels });
}
