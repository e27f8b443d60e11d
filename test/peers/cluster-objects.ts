/** Objects that are put into a real cluster. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Manifest } from '../etc/kubernetes/manifests.ts';

export const GROUP = 'scheduling.blazar-enforcement';
export const RBAC = 'rbac.authorization.k8s.io';

export const namespace = (name: string, labels: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});

export const serviceAccount = (name: string, namespace: string) => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name, namespace },
});

export const priorityClass = (name: string, value: number, more: object = {}) => ({
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  metadata: { name },
  value,
  ...more,
});

export const clusterRole = (name: string, ...rules: object[]) => ({
  apiVersion: `${RBAC}/v1`,
  kind: 'ClusterRole',
  metadata: { name },
  rules,
});

/** To a ClusterRole: in a namespace if there is one, else in the whole cluster. */
export const binding = (name: string, role: string, subjects: readonly object[], namespace?: string) => ({
  apiVersion: `${RBAC}/v1`,
  kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
  metadata: { name, ...(namespace !== undefined && { namespace }) },
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
  subjects,
});

/** Of an account in a namespace, or of no namespace. */
export const accountSubject = (name: string, namespace: string) => ({
  kind: 'ServiceAccount',
  name,
  namespace,
});

/** The rule of a role for the use of policies. */
export const useOf = (...resourceNames: string[]) => ({
  apiGroups: [GROUP],
  resources: ['schedulingpolicies'],
  verbs: ['use'],
  resourceNames,
});

export const schedulingPolicy = (name: string, spec: unknown = {}) => ({
  apiVersion: `${GROUP}/v1alpha1`,
  kind: 'SchedulingPolicy',
  metadata: { name },
  spec,
});

/** A webhook configuration of etc/kubernetes for a service outside of the cluster, which is in `folder`. */
export function webhooksAt(url: string, folder: string) {
  const caBundle = readFileSync(join(folder, 'ca.crt')).toString('base64');
  return (configuration: Manifest): Manifest => ({
    ...configuration,
    webhooks: configuration.webhooks.map(({ clientConfig, ...webhook }: Manifest) => ({
      ...webhook,
      clientConfig: { caBundle, url: new URL(clientConfig.service.path, url).href },
    })),
  });
}
