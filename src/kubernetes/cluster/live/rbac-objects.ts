/** Roles and bindings as an API server sends them. Source: Kubernetes API, rbac.authorization.k8s.io/v1. */
import { z } from 'zod';
import type { Binding, Role } from '../../policies/access.ts';
import { subjectsIn } from '../../policies/documents/rbac-schema.ts';

export const RBAC_PATH = '/apis/rbac.authorization.k8s.io/v1';
export const RBAC_KINDS = ['roles', 'clusterroles', 'rolebindings', 'clusterrolebindings'] as const;
export type RbacKind = (typeof RBAC_KINDS)[number];

// Lenient: the stored object counts, also with fields unknown here.
const metadata = z.object({ name: z.string(), namespace: z.string().optional() });
const texts = z.array(z.string()).nullish();
const rule = z.object({ apiGroups: texts, resources: texts, resourceNames: texts, verbs: texts });
const roleSchema = z.object({ metadata, rules: z.array(rule).nullish() });

const subject = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ServiceAccount'), name: z.string(), namespace: z.string().nullish() }),
  z.object({ kind: z.enum(['User', 'Group']), name: z.string() }),
]);
const bindingSchema = z.object({
  metadata,
  roleRef: z.object({ kind: z.enum(['Role', 'ClusterRole']), name: z.string() }),
  subjects: z.array(subject).nullish(),
});

/** @throws ZodError */
export function roleIn(kind: 'roles' | 'clusterroles', object: unknown): Role {
  const { metadata, rules } = roleSchema.parse(object);
  return { kind: kind === 'roles' ? 'Role' : 'ClusterRole', ...identity(metadata), rules: rules ?? [] };
}

/** @throws ZodError */
export function bindingIn(kind: 'rolebindings' | 'clusterrolebindings', object: unknown): Binding {
  const { metadata, roleRef, subjects } = bindingSchema.parse(object);
  return {
    kind: kind === 'rolebindings' ? 'RoleBinding' : 'ClusterRoleBinding',
    ...identity(metadata),
    roleRef,
    subjects: subjectsIn(subjects, metadata.namespace),
  };
}

function identity({ name, namespace }: z.infer<typeof metadata>) {
  return { name, namespace };
}
