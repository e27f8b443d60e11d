import {
  AdminPolicy,
  acceleratorsOf,
  changeResources,
  MutatedUserRequest,
  type UserRequest,
} from '../src/skypilot/index.ts';

/** Uses spot instances for all requests with accelerators. Does not recognize an `instance_type` that has some. */
export class UseSpotForGpuPolicy extends AdminPolicy {
  override validateAndMutate({ task, skypilotConfig }: UserRequest): MutatedUserRequest {
    changeResources(task, (resources) => (acceleratorsOf(resources).length > 0 ? { use_spot: true } : {}));
    return new MutatedUserRequest(task, skypilotConfig);
  }
}
