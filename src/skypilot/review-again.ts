/** What SkyPilot does with answers: it asks again with them, and compares those of a pipeline. */
import { isDeepStrictEqual } from 'node:util';
import type { Review } from './policies/policy-chain.ts';
import type { ReceivedRequest } from './request/wire.ts';

/** The next request that SkyPilot would send. */
export function answered(request: ReceivedRequest, { task, skypilotConfig }: Review): ReceivedRequest {
  return {
    ...request,
    task: request.task.with(task),
    skypilotConfig: request.skypilotConfig.with(skypilotConfig.toDict()),
  };
}

/**
 * SkyPilot uses one configuration for a whole pipeline, and rejects a pipeline whose tasks end up with different
 * ones.
 */
export function haveOneConfiguration(reviews: readonly Review[]): boolean {
  const [first, ...others] = reviews
    .filter(({ allowed }) => allowed)
    .map(({ skypilotConfig }) => skypilotConfig);
  return first === undefined || others.every((one) => isDeepStrictEqual(one.toDict(), first.toDict()));
}
