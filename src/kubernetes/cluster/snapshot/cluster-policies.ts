/** The policies of a cluster, read once. */
import { z } from 'zod';
import type { InvalidPolicy, SchedulingPolicy } from '../../policies/policy.ts';
import type { ApiClient } from '../api/contract.ts';
import { listObjects } from '../api/list.ts';
import { CLUSTER_GROUP, readPolicy } from '../live/read-policy.ts';

export const POLICIES_PATH = `/apis/${CLUSTER_GROUP}/v1alpha1/schedulingpolicies`;

export interface ClusterPolicies {
  readonly valid: readonly SchedulingPolicy[];
  readonly invalid: readonly InvalidPolicy[];
}

/** An object that is not valid is returned as such: what it demands is unknown. @throws ApiError @throws ApiUnreachableError */
export async function readClusterPolicies(client: ApiClient): Promise<ClusterPolicies> {
  const valid: SchedulingPolicy[] = [];
  const invalid: InvalidPolicy[] = [];
  const { objects } = await listObjects(client, POLICIES_PATH);
  for (const object of objects) {
    const { policy, mistake } = readPolicy(object);
    if (policy === undefined) {
      invalid.push({ name: object.metadata.name, message: mistake });
    } else {
      valid.push(policy);
    }
  }
  return { valid, invalid };
}

const priorityClass = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  globalDefault: z.boolean().nullish(),
  value: z.number().nullish(),
});

/** The PriorityClass that the API server gives to pods without one: of several, that of the lowest value. */
export async function readDefaultPriorityClass(client: ApiClient): Promise<string | undefined> {
  const { objects } = await listObjects(client, '/apis/scheduling.k8s.io/v1/priorityclasses');
  return objects
    .map((item) => priorityClass.parse(item))
    .filter(({ globalDefault }) => globalDefault === true)
    .sort((a, b) => (a.value ?? 0) - (b.value ?? 0))
    .at(0)?.metadata.name;
}
