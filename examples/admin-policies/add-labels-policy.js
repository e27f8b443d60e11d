import { AdminPolicy, Config, MutatedUserRequest } from 'blazar-enforcement/skypilot';
import { z } from 'zod';

/** What Kubernetes takes as the name of a label: at most 63 characters, behind a domain if there is one. */
const NAME = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/;

const options = z.object({
  add_labels: z.record(z.string().regex(NAME), z.string().regex(VALUE)).default({ app: 'skypilot' }).meta({
    description:
      'The labels that everything in Kubernetes gets, also where a request has others of these names.',
    pairs: 'label:value',
    expected: 'label:value pairs with commas between them, of names and values that Kubernetes takes',
  }),
});

/** Where SkyPilot has Kubernetes: clusters of Kubernetes, and machines that it makes one of. */
const CLOUDS = ['kubernetes', 'ssh'];

/**
 * Labels all that SkyPilot starts in Kubernetes. What SkyPilot would lay over these labels gets them too: the configuration of a
 * context, and what a task overrides.
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
   * Wherever metadata are set, since they would be laid over those of the whole.
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
