import { AdminPolicy, MutatedUserRequest } from 'blazar-enforcement/skypilot';
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

/**
 * Labels all that SkyPilot starts in Kubernetes.
 *
 * @extends {AdminPolicy<z.infer<typeof options>>}
 */
export class AddLabelsPolicy extends AdminPolicy {
  static options = options;

  /** @param {import('blazar-enforcement/skypilot').UserRequest} userRequest */
  validateAndMutate({ task, skypilotConfig }) {
    skypilotConfig.setNested(['kubernetes', 'custom_metadata', 'labels'], this.options.add_labels);
    return new MutatedUserRequest(task, skypilotConfig);
  }
}
