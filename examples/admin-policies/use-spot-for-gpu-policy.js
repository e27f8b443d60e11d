import {
  AdminPolicy,
  acceleratorsOf,
  changeResources,
  MutatedUserRequest,
} from 'blazar-enforcement/skypilot';

/** Uses spot instances for all requests with accelerators. Does not recognize an `instance_type` that has some. */
export class UseSpotForGpuPolicy extends AdminPolicy {
  /** @param {import('blazar-enforcement/skypilot').UserRequest} userRequest */
  validateAndMutate({ task, skypilotConfig }) {
    changeResources(task, (resources) => (acceleratorsOf(resources).length > 0 ? { use_spot: true } : {}));
    return new MutatedUserRequest(task, skypilotConfig);
  }
}
