/** Roles and bindings in few words. */
import type { Binding, Role } from '../../../../src/kubernetes/policies/access.ts';
import type { Rule, Subject } from '../../../../src/kubernetes/policies/documents/rbac-schema.ts';

export function clusterRole(name: string, ...rules: Rule[]): Role {
  return { kind: 'ClusterRole', name, namespace: undefined, rules };
}

export function roleIn(namespace: string, name: string, ...rules: Rule[]): Role {
  return { kind: 'Role', name, namespace, rules };
}

export function everywhere(name: string, ...subjects: Subject[]): Binding {
  const roleRef = { kind: 'ClusterRole', name };
  return { kind: 'ClusterRoleBinding', name, namespace: undefined, roleRef, subjects };
}

export function boundIn(
  namespace: string,
  kind: Role['kind'],
  name: string,
  ...subjects: Subject[]
): Binding {
  return { kind: 'RoleBinding', name, namespace, roleRef: { kind, name }, subjects };
}
