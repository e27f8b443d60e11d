import {
  AdminPolicy,
  acceleratorsOf,
  changeResources,
  MutatedUserRequest,
  mayHaveSpot,
  PolicyRejected,
  resourcesOf,
  type UserRequest,
} from '../src/skypilot/index.ts';

/**
 * Uses spot instances for all requests with accelerators, where SkyPilot has some. Does not recognize an
 * `instance_type` that has accelerators.
 */
export class UseSpotForGpuPolicy extends AdminPolicy {
  override validateAndMutate(request: UserRequest): MutatedUserRequest {
    const { task, skypilotConfig } = request;
    changeResources(task, (resources) =>
      acceleratorsOf(resources).length > 0 && mayHaveSpot(resources, request) ? { use_spot: true } : {},
    );
    const isSpot = resourcesOf(task).map(({ use_spot }) => use_spot === true);
    // SkyPilot's controller of such a service would fail.
    if ((task.service ?? null) !== null && isSpot.includes(true) && isSpot.includes(false)) {
      throw new PolicyRejected(
        'Alternatives of a service must all be spot instances, or none, and accelerators are spot instances here where the cloud has some: name alternatives of one kind.',
      );
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }
}
