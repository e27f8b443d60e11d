import { z } from 'zod';
import {
  AdminPolicy,
  Config,
  isMapping,
  MutatedUserRequest,
  type UserRequest,
} from '../src/skypilot/index.ts';

/** A Kubernetes label name: at most 63 characters, with an optional domain prefix. */
const NAME = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

const options = z.object({
  add_labels: z.record(z.string().regex(NAME), z.string().regex(VALUE)).default({ app: 'skypilot' }).meta({
    description:
      'Labels for everything that SkyPilot creates in Kubernetes. They replace labels of the same name in a request.',
    pairs: 'label:value',
    expected: 'comma-separated label:value pairs with names and values that Kubernetes accepts',
  }),
});

/** Configurations of SkyPilot that lead to Kubernetes: its clusters, and machines that SkyPilot turns into one. */
const CLOUDS = ['kubernetes', 'ssh'];

/**
 * Adds labels to everything that SkyPilot starts in Kubernetes. Also adds them where SkyPilot would override the
 * general labels: in the configuration of a context, and in that of a task.
 */
export class AddLabelsPolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;

  override validateAndMutate({ task, skypilotConfig }: UserRequest): MutatedUserRequest {
    this.#add(skypilotConfig, ['kubernetes', 'custom_metadata']);
    this.#label(skypilotConfig);
    this.#labelMembers(task, ['config', '_cluster_config_overrides']);
    this.#labelMembers(task.experimental, ['config_overrides']);
    this.#labelMembers(task.resources, ['_cluster_config_overrides']);
    for (const alternative of alternativesOf(task.resources)) {
      this.#labelMembers(alternative, ['_cluster_config_overrides']);
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  /** Adds labels wherever metadata is set, because it would override the general metadata. */
  #label(config: Config): void {
    for (const cloud of CLOUDS) {
      const contexts = config.getNested([cloud, 'context_configs']);
      const paths = Object.keys(isMapping(contexts) ? contexts : {}).map((name) => ['context_configs', name]);
      for (const path of [[], ...paths]) {
        const metadata = [cloud, ...path, 'custom_metadata'];
        if (config.getNested(metadata) !== undefined) {
          this.#add(config, metadata);
        }
      }
    }
  }

  #add(config: Config, metadata: readonly string[]): void {
    const labels = config.getNested([...metadata, 'labels']);
    const all = { ...(isMapping(labels) ? labels : {}), ...this.options.add_labels };
    config.assign([...metadata, 'labels'], all);
  }

  /** `names`: of configurations in `holder`. */
  #labelMembers(holder: unknown, names: readonly string[]): void {
    for (const name of isMapping(holder) ? names : []) {
      const own = (holder as Record<string, unknown>)[name];
      if (isMapping(own)) {
        const config = Config.fromDict(own);
        this.#label(config);
        (holder as Record<string, unknown>)[name] = config.toDict();
      }
    }
  }
}

function alternativesOf(resources: unknown): unknown[] {
  return isMapping(resources) ? [resources.any_of, resources.ordered].flat() : [];
}
