/**
 * Roles and bindings of a cluster, as far as they say who may use policies. Read leniently: what the API server has stored counts,
 * also with fields that nobody here knows.
 * Source: Kubernetes API, rbac.authorization.k8s.io/v1; Kubernetes docs, "Using RBAC Authorization".
 */
import { z } from 'zod';
import { serviceAccount } from '../../policies/access.ts';
import type { ApiObject } from '../api/contract.ts';
import { POLICY_GROUP, POLICY_RESOURCE, POLICY_VERB } from './access-review.ts';

/** The kinds, by their names in paths. */
export const RBAC_KINDS = ['roles', 'clusterroles', 'rolebindings', 'clusterrolebindings'] as const;
export type RbacKind = (typeof RBAC_KINDS)[number];

const texts = z.array(z.string()).nullish();

const roleSchema = z.object({
  rules: z
    .array(z.object({ apiGroups: texts, resources: texts, resourceNames: texts, verbs: texts }))
    .nullish(),
});

const bindingSchema = z.object({
  roleRef: z.object({ kind: z.enum(['Role', 'ClusterRole']), name: z.string() }),
  subjects: z
    .array(
      z.object({
        kind: z.enum(['User', 'Group', 'ServiceAccount']),
        name: z.string(),
        namespace: z.string().nullish(),
      }),
    )
    .nullish(),
});

/** Which policies a role lets one use: all, or the named ones. */
export type UseGrant = 'all' | readonly string[];

export interface UseBinding {
  /** As `roleId` has it. */
  readonly role: string;
  /** Whom the role is given to, as `subjectId` has it. */
  readonly subjects: readonly string[];
}

export function roleId(kind: RbacKind, { namespace = '', name }: ApiObject['metadata']): string {
  return `${kind}\n${namespace}\n${name}`;
}

/** A subject in a namespace; '' = in all of them. Namespaces have no line breaks. */
export function subjectId(namespace: string, kind: 'User' | 'Group', name: string): string {
  return `${namespace}\n${kind} ${name}`;
}

/** @throws ZodError */
export function useGrantOf(role: ApiObject): UseGrant {
  const names = new Set<string>();
  for (const { apiGroups, resources, resourceNames, verbs } of roleSchema.parse(role).rules ?? []) {
    if (
      includes(verbs, POLICY_VERB) &&
      includes(resources, POLICY_RESOURCE) &&
      includes(apiGroups, POLICY_GROUP)
    ) {
      if (resourceNames == null || resourceNames.length === 0) {
        return 'all';
      }
      for (const name of resourceNames) {
        names.add(name);
      }
    }
  }
  return [...names];
}

/** @throws ZodError */
export function useBindingOf(kind: 'rolebindings' | 'clusterrolebindings', binding: ApiObject): UseBinding {
  const { roleRef, subjects } = bindingSchema.parse(binding);
  const place = kind === 'rolebindings' ? (binding.metadata.namespace ?? '') : '';
  const role =
    roleRef.kind === 'Role'
      ? roleId('roles', { namespace: place, name: roleRef.name })
      : roleId('clusterroles', { name: roleRef.name });
  return {
    role,
    subjects: (subjects ?? []).flatMap(({ kind: of, name, namespace }) => {
      if (of !== 'ServiceAccount') {
        return [subjectId(place, of, name)];
      }
      // Without a namespace it is that of the binding.
      const home = namespace || place;
      return home === '' ? [] : [subjectId(place, 'User', serviceAccount(home, name).user)];
    }),
  };
}

function includes(values: readonly string[] | null | undefined, value: string): boolean {
  return values?.some((one) => one === '*' || one === value) === true;
}
