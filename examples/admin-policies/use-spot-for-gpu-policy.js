import {
  AdminPolicy,
  acceleratorsOf,
  changeResources,
  MutatedUserRequest,
} from 'blazar-enforcement/skypilot';

/** Takes spot instances wherever accelerators are asked for. An `instance_type` that has some is not seen as such. */
export class UseSpotForGpuPolicy extends AdminPolicy {
  /** @param {import('blazar-enforcement/skypilot').UserRequest} userRequest */
  validateAndMutate({ task, skypilotConfig }) {
    changeResources(task, (resources) => (acceleratorsOf(resources).length > 0 ? { use_spot: true } : {}));
    return new MutatedUserRequest(task, skypilotConfig);
  }
}
