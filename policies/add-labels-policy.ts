import { z } from 'zod';
import {
  AdminPolicy,
  kubernetesLabels,
  labelKubernetes,
  MutatedUserRequest,
  type UserRequest,
} from '../src/skypilot/index.ts';

const options = z.object({
  add_labels: kubernetesLabels(
    'Labels for everything that SkyPilot creates in Kubernetes. They replace labels of the same name in a request.',
  ),
});

/**
 * Adds labels to everything that SkyPilot starts in Kubernetes. Also adds them where SkyPilot would override
 * the general labels: in the configuration of a context or a task.
 */
export class AddLabelsPolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;

  override validateAndMutate({ task, skypilotConfig }: UserRequest): MutatedUserRequest {
    labelKubernetes({ task, skypilotConfig }, this.options.add_labels, ['kubernetes']);
    return new MutatedUserRequest(task, skypilotConfig);
  }
}
