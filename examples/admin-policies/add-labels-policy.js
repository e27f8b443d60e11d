import { AdminPolicy, Config, MutatedUserRequest } from 'blazar-enforcement/skypilot';
import { z } from 'zod';

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
 *
 * @extends {AdminPolicy<z.infer<typeof options>>}
 */
export class AddLabelsPolicy extends AdminPolicy {
  static options = options;

  /** @param {import('blazar-enforcement/skypilot').UserRequest} userRequest */
  validateAndMutate({ task, skypilotConfig }) {
    skypilotConfig.setNested(['kubernetes', 'custom_metadata', 'labels'], this.options.add_labels);
    this.#label(skypilotConfig);
    this.#labelMembers(task, ['config', '_cluster_config_overrides']);
    this.#labelMembers(task.experimental, ['config_overrides']);
    this.#labelMembers(task.resources, ['_cluster_config_overrides']);
    for (const alternative of alternativesOf(task.resources)) {
      this.#labelMembers(alternative, ['_cluster_config_overrides']);
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  /**
   * Adds labels wherever metadata is set, because it would override the general metadata.
   *
   * @param {Config} config
   */
  #label(config) {
    for (const cloud of CLOUDS) {
      const contexts = config.getNested([cloud, 'context_configs']);
      const paths = Object.keys(isMapping(contexts) ? contexts : {}).map((name) => ['context_configs', name]);
      for (const path of [[], ...paths]) {
        const metadata = [cloud, ...path, 'custom_metadata'];
        if (config.getNested(metadata) !== undefined) {
          config.setNested([...metadata, 'labels'], this.options.add_labels);
        }
      }
    }
  }

  /**
   * @param {unknown} holder
   * @param {readonly string[]} names of configurations in it
   */
  #labelMembers(holder, names) {
    for (const name of isMapping(holder) ? names : []) {
      const own = holder[name];
      if (isMapping(own)) {
        const config = Config.fromDict(own);
        this.#label(config);
        holder[name] = config.toDict();
      }
    }
  }
}

/** @param {unknown} resources */
function alternativesOf(resources) {
  return isMapping(resources) ? [resources.any_of, resources.ordered].flat() : [];
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isMapping(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
