/** Roles and bindings of a cluster, as far as they are about the use of policies, read once. */
import { z } from 'zod';
import type { Binding, Role } from '../../policies/access.ts';
import type { ApiClient } from '../api/contract.ts';
import { listPages } from '../api/list.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';

export interface ClusterRbac {
  readonly roles: readonly Role[];
  readonly bindings: readonly Binding[];
}

const texts = z.array(z.string()).nullish();
const metadata = z.looseObject({ name: z.string(), namespace: z.string().optional() });
const role = z.looseObject({
  metadata,
  rules: z
    .array(
      z.object({
        apiGroups: texts,
        resources: texts,
        resourceNames: texts,
        nonResourceURLs: texts,
        verbs: texts,
      }),
    )
    .nullish(),
});
const binding = z.looseObject({
  metadata,
  roleRef: z.looseObject({ kind: z.string(), name: z.string() }),
  subjects: z
    .array(z.looseObject({ kind: z.string(), name: z.string(), namespace: z.string().nullish() }))
    .nullish(),
});

/** `namespace`: only its roles and bindings, besides those of the cluster. The rules of aggregated roles are as the control plane has written them. */
export async function readClusterRbac(client: ApiClient, namespace?: string): Promise<ClusterRbac> {
  const place = namespace === undefined ? RBAC : `${RBAC}/namespaces/${encodeURIComponent(namespace)}`;
  const roles: Role[] = [];
  const bindings: Binding[] = [];
  for (const [kind, path] of [
    ['ClusterRole', `${RBAC}/clusterroles`],
    ['Role', `${place}/roles`],
  ] as const) {
    for await (const { items } of listPages(client, path)) {
      roles.push(...items.map((item) => asRole(kind, item)).filter(isAboutUse));
    }
  }
  const known = new Set(roles.map((one) => id(one.kind, one.namespace, one.name)));
  for (const [kind, path] of [
    ['ClusterRoleBinding', `${RBAC}/clusterrolebindings`],
    ['RoleBinding', `${place}/rolebindings`],
  ] as const) {
    for await (const { items } of listPages(client, path)) {
      bindings.push(
        ...items
          .map((item) => asBinding(kind, item))
          .filter(({ roleRef, namespace: own }) =>
            known.has(id(roleRef.kind, roleRef.kind === 'Role' ? own : undefined, roleRef.name)),
          ),
      );
    }
  }
  return { roles, bindings };
}

function asRole(kind: Role['kind'], item: unknown): Role {
  const { metadata, rules } = role.parse(item);
  return { kind, name: metadata.name, namespace: metadata.namespace, rules: rules ?? [] };
}

/** Most roles of a cluster are not, and need no memory. */
function isAboutUse({ rules }: Role): boolean {
  return rules.some(
    ({ verbs, resources }) =>
      verbs?.some((verb) => verb === 'use' || verb === '*') === true &&
      resources?.some((resource) => resource === 'schedulingpolicies' || resource === '*') === true,
  );
}

function asBinding(kind: Binding['kind'], item: unknown): Binding {
  const { metadata, roleRef, subjects } = binding.parse(item);
  return {
    kind,
    name: metadata.name,
    namespace: metadata.namespace,
    roleRef: { kind: roleRef.kind, name: roleRef.name },
    subjects: (subjects ?? []).flatMap((subject): Binding['subjects'] => {
      const { kind: of, name } = subject;
      if (of === 'ServiceAccount') {
        return [{ kind: of, name, namespace: subject.namespace || (metadata.namespace ?? '') }];
      }
      return of === 'User' || of === 'Group' ? [{ kind: of, name }] : [];
    }),
  };
}

function id(kind: string, namespace: string | undefined, name: string): string {
  return `${kind}\n${namespace ?? ''}\n${name}`;
}
