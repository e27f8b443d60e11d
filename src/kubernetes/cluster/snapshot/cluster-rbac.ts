/**
 * Reads a cluster once: policies, the default priority class, and the roles and bindings about the use of
 * policies.
 */
import { z } from 'zod';
import { type Binding, givenBy, includes, RESOURCE, type Role, roleId, VERB } from '../../policies/access.ts';
import type { InvalidPolicy, SchedulingPolicy } from '../../policies/policy.ts';
import type { ApiClient } from '../api/contract.ts';
import { listObjects, listPages } from '../api/list.ts';
import { bindingIn, RBAC_PATH, roleIn } from '../live/rbac-objects.ts';
import { POLICIES_PATH, readPolicy } from '../live/read-policy.ts';

interface ClusterRbac {
  readonly roles: readonly Role[];
  readonly bindings: readonly Binding[];
}

/** `namespace`: only its roles and bindings, besides those of the cluster. The rules of aggregated roles are as the control plane has written them. */
export async function readClusterRbac(client: ApiClient, namespace?: string): Promise<ClusterRbac> {
  const place =
    namespace === undefined ? RBAC_PATH : `${RBAC_PATH}/namespaces/${encodeURIComponent(namespace)}`;
  const roles: Role[] = [];
  const bindings: Binding[] = [];
  for (const [kind, path] of [
    ['clusterroles', `${RBAC_PATH}/clusterroles`],
    ['roles', `${place}/roles`],
  ] as const) {
    for await (const { items } of listPages(client, path)) {
      roles.push(...items.map((item) => roleIn(kind, item)).filter(isAboutUse));
    }
  }
  const known = new Set(roles.map((one) => roleId(one.kind, one.namespace, one.name)));
  for (const [kind, path] of [
    ['clusterrolebindings', `${RBAC_PATH}/clusterrolebindings`],
    ['rolebindings', `${place}/rolebindings`],
  ] as const) {
    for await (const { items } of listPages(client, path)) {
      bindings.push(
        ...items.map((item) => bindingIn(kind, item)).filter((one) => known.has(givenBy(one).role)),
      );
    }
  }
  return { roles, bindings };
}

/** Most roles of a cluster are not, and need no memory. */
function isAboutUse({ rules }: Role): boolean {
  return rules.some(({ verbs, resources }) => includes(verbs, VERB) && includes(resources, RESOURCE));
}

export interface ClusterPolicies {
  readonly valid: readonly SchedulingPolicy[];
  readonly invalid: readonly InvalidPolicy[];
}

/**
 * Invalid policies are returned as such: their requirements are unknown. @throws ApiError
 * @throws ApiUnreachableError
 */
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

/** The PriorityClass that the API server gives to pods without one: of several, the one with the lowest value. */
export async function readDefaultPriorityClass(client: ApiClient): Promise<string | undefined> {
  const { objects } = await listObjects(client, '/apis/scheduling.k8s.io/v1/priorityclasses');
  return objects
    .map((item) => priorityClass.parse(item))
    .filter(({ globalDefault }) => globalDefault === true)
    .sort((a, b) => (a.value ?? 0) - (b.value ?? 0))
    .at(0)?.metadata.name;
}
