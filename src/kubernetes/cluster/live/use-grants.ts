/** Who may use which policies by roles and bindings: an index that one object changes at little cost. */
import { z } from 'zod';
import { type Account, includes, RESOURCE, serviceAccount, VERB } from '../../policies/access.ts';
import { CLUSTER_GROUP } from '../../policies/policy.ts';
import type { ApiObject } from '../api/contract.ts';

interface RoleEntry {
  grant: UseGrant;
  readonly bindings: Set<UseBinding>;
}

const NOTHING: UseGrant = [];

/**
 * Subjects are indexed only for roles that speak of policies, which are few among the roles of a cluster. The other bindings are kept,
 * since their roles may change.
 */
export class UseGrants {
  readonly #roles = new Map<string, RoleEntry>();
  readonly #bindings = new Map<string, UseBinding>();
  /** By subject, the roles that it has. A role may be given to a subject several times. */
  readonly #given = new Map<string, RoleEntry[]>();
  readonly #changed: (subject: string) => void;

  /** `changed` hears each subject whose grants may be others now. */
  constructor(changed: (subject: string) => void = () => undefined) {
    this.#changed = changed;
  }

  get size() {
    return { roles: this.#roles.size, bindings: this.#bindings.size, subjects: this.#given.size };
  }

  setRole(id: string, grant: UseGrant): void {
    const role = this.#roleOf(id);
    if (isSame(role.grant, grant)) {
      this.#dropUnused(id, role);
      return;
    }
    const was = role.grant;
    role.grant = grant;
    for (const { subjects } of role.bindings) {
      for (const subject of subjects) {
        if (isNothing(was)) {
          this.#give(subject, role);
        } else if (isNothing(grant)) {
          this.#take(subject, role);
        }
        this.#changed(subject);
      }
    }
    this.#dropUnused(id, role);
  }

  removeRole(id: string): void {
    this.setRole(id, NOTHING);
  }

  setBinding(id: string, binding: UseBinding): void {
    const known = this.#bindings.get(id);
    if (known?.role === binding.role && isSame(known.subjects, binding.subjects)) {
      return;
    }
    this.removeBinding(id);
    const role = this.#roleOf(binding.role);
    this.#bindings.set(id, binding);
    role.bindings.add(binding);
    if (!isNothing(role.grant)) {
      for (const subject of binding.subjects) {
        this.#give(subject, role);
        this.#changed(subject);
      }
    }
  }

  removeBinding(id: string): void {
    const binding = this.#bindings.get(id);
    const role = binding === undefined ? undefined : this.#roles.get(binding.role);
    if (binding === undefined || role === undefined) {
      return;
    }
    this.#bindings.delete(id);
    role.bindings.delete(binding);
    if (!isNothing(role.grant)) {
      for (const subject of binding.subjects) {
        this.#take(subject, role);
        this.#changed(subject);
      }
    }
    this.#dropUnused(binding.role, role);
  }

  /** What an account may use. */
  of(account: Account): 'all' | ReadonlySet<string> {
    const names = new Set<string>();
    for (const subject of subjectsOf(account)) {
      for (const { grant } of this.#given.get(subject) ?? []) {
        if (grant === 'all') {
          return 'all';
        }
        for (const name of grant) {
          names.add(name);
        }
      }
    }
    return names;
  }

  #roleOf(id: string): RoleEntry {
    const known = this.#roles.get(id);
    if (known !== undefined) {
      return known;
    }
    const role: RoleEntry = { grant: NOTHING, bindings: new Set() };
    this.#roles.set(id, role);
    return role;
  }

  #dropUnused(id: string, { grant, bindings }: RoleEntry): void {
    if (isNothing(grant) && bindings.size === 0) {
      this.#roles.delete(id);
    }
  }

  #give(subject: string, role: RoleEntry): void {
    const roles = this.#given.get(subject);
    if (roles === undefined) {
      this.#given.set(subject, [role]);
    } else {
      roles.push(role);
    }
  }

  #take(subject: string, role: RoleEntry): void {
    const roles = this.#given.get(subject) ?? [];
    const at = roles.indexOf(role);
    if (at >= 0) {
      roles.splice(at, 1);
    }
    if (roles.length === 0) {
      this.#given.delete(subject);
    }
  }
}

/** The subjects whose grants an account has. */
export function* subjectsOf({ user, groups, namespace }: Account): Generator<string> {
  for (const place of namespace === undefined || namespace === '' ? [''] : ['', namespace]) {
    yield subjectId(place, 'User', user);
    for (const group of groups) {
      yield subjectId(place, 'Group', group);
    }
  }
}

function isNothing(grant: UseGrant): boolean {
  return grant !== 'all' && grant.length === 0;
}

function isSame(one: UseGrant, other: UseGrant): boolean {
  if (one === 'all' || other === 'all') {
    return one === other;
  }
  return isSameList(one, other);
}

export const RBAC_KINDS = ['roles', 'clusterroles', 'rolebindings', 'clusterrolebindings'] as const;
export type RbacKind = (typeof RBAC_KINDS)[number];

// Read leniently: what the API server has stored counts, also with fields that nobody here knows.
// Source: Kubernetes API, rbac.authorization.k8s.io/v1.
const texts = z.array(z.string()).nullish();

export const roleSchema = z.object({
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
type UseGrant = 'all' | readonly string[];

interface UseBinding {
  /** As `roleId` has it. */
  readonly role: string;
  /** Whom the role is given to, as `subjectId` has it. */
  readonly subjects: readonly string[];
}

export function roleId(kind: RbacKind, { namespace = '', name }: ApiObject['metadata']): string {
  return `${kind}\n${namespace}\n${name}`;
}

/** A subject in a namespace; '' = in all of them. Namespaces have no line breaks. */
function subjectId(namespace: string, kind: 'User' | 'Group', name: string): string {
  return `${namespace}\n${kind} ${name}`;
}

/** @throws ZodError */
export function useGrantOf(role: ApiObject): UseGrant {
  const names = new Set<string>();
  for (const { apiGroups, resources, resourceNames, verbs } of roleSchema.parse(role).rules ?? []) {
    if (includes(verbs, VERB) && includes(resources, RESOURCE) && includes(apiGroups, CLUSTER_GROUP)) {
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

export function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one === other || (one.length === other.length && one.every((name, index) => name === other[index]));
}
