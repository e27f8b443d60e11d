/**
 * Decides which account may use which policy: Kubernetes RBAC, for the verb `use`.
 * Source: Kubernetes docs, "Using RBAC Authorization".
 */

import type { Wait } from '../../base/deadline.ts';
import type { Rule, Subject } from './documents/rbac-schema.ts';
import type { EffectivePolicy } from './effective-policy.ts';
import { compare } from './merge.ts';

export const RESOURCE = 'schedulingpolicies';
export const VERB = 'use';

export interface Role {
  readonly kind: 'Role' | 'ClusterRole';
  readonly name: string;
  readonly namespace: string | undefined;
  readonly rules: readonly Rule[];
}

export interface Binding {
  readonly kind: 'RoleBinding' | 'ClusterRoleBinding';
  readonly name: string;
  readonly namespace: string | undefined;
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly Subject[];
}

/** A user with groups in a namespace. Without a namespace, only cluster-wide grants count. */
export interface Account {
  readonly user: string;
  readonly groups: readonly string[];
  readonly namespace?: string | undefined;
}

/** The user that stands for a service account, with the groups that Kubernetes gives it. */
export function serviceAccount(namespace: string, name: string): Account {
  return {
    user: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    namespace,
  };
}

/** What bindings grant to one subject, in one namespace or in all of them. */
export interface AccessGrant {
  /** `User lin`, `Group system:authenticated`. A service account appears as its user. */
  readonly subject: string;
  /** `undefined` = all namespaces. */
  readonly namespace: string | undefined;
  /** Names of existing policies, sorted. */
  readonly policies: readonly string[];
}

interface PolicyResource {
  readonly name: string;
  /** The policy's API group. Rules for another group do not match it. */
  readonly group: string;
}

/** Names of policies, or all policies. */
export type Grant = 'all' | ReadonlySet<string>;

/** By subject, as in `subjectId`. Subjects of the same role share one grant. */
export type Grants = ReadonlyMap<string, ReadonlySet<Grant>>;

/** The cost of a lookup does not depend on the number of other subjects. */
export class PolicyAccess {
  readonly #grants: Grants;

  constructor(policies: readonly PolicyResource[], roles: readonly Role[], bindings: readonly Binding[]) {
    const groups = new Set(policies.map(({ group }) => group));
    const usable = (role: Role) => {
      // Once for each group: a role may name thousands of policies.
      const granted = new Map([...groups].map((group) => [group, grantOf(role, group)]));
      return new Set(
        policies.filter(({ name, group }) => isGranted(granted.get(group), name)).map(({ name }) => name),
      );
    };
    this.#grants = grantsOf(
      new Map(roles.map((role) => [roleId(role.kind, role.namespace, role.name), usable(role)])),
      bindings.map(boundRole),
    );
  }

  grants(): AccessGrant[] {
    return [...this.#grants.keys()]
      .map((id) => {
        // Subject names may contain line breaks too.
        const [namespace = '', ...subject] = id.split('\n');
        return {
          subject: subject.join('\n'),
          namespace: namespace === '' ? undefined : namespace,
          policies: this.#named([id]),
        };
      })
      .sort((a, b) => compare(a.subject, b.subject) || compare(a.namespace ?? '', b.namespace ?? ''));
  }

  /** Names of the policies that an account may use, sorted. */
  usableBy(account: Account): readonly string[] {
    return this.#named(subjectsOf(account));
  }

  #named(subjects: Iterable<string>): string[] {
    return [...grantedTo(this.#grants, subjects)].sort();
  }
}

/** What roles let one use, by `roleId`, and whom they are given to. */
export function grantsOf(roles: ReadonlyMap<string, Grant>, given: Iterable<BoundRole>): Grants {
  const grants = new Map<string, Set<Grant>>();
  for (const { role, subjects } of given) {
    const grant = roles.get(role);
    if (grant !== undefined) {
      for (const subject of subjects) {
        grants.set(subject, (grants.get(subject) ?? new Set()).add(grant));
      }
    }
  }
  return grants;
}

/** The combined grant of some subjects. */
export function grantedTo(grants: Grants, subjects: Iterable<string>): Grant {
  const names = new Set<string>();
  for (const subject of subjects) {
    for (const grant of grants.get(subject) ?? []) {
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

export function grantsUse(role: Role, { name, group }: PolicyResource): boolean {
  return isGranted(grantOf(role, group), name);
}

function isGranted(grant: Grant | undefined, name: string): boolean {
  return grant === 'all' || grant?.has(name) === true;
}

/**
 * The policies of an API group that a role grants. A rule without resourceNames covers all of them. Names
 * have no wildcards.
 */
export function grantOf({ rules }: Role, group: string): Grant {
  const names = rules
    .filter(
      ({ verbs, resources, apiGroups }) =>
        includes(verbs, VERB) && includes(resources, RESOURCE) && includes(apiGroups, group),
    )
    .map(({ resourceNames }) => resourceNames ?? []);
  return names.some(({ length }) => length === 0) ? 'all' : new Set(names.flat());
}

/** Whether a rule's list has a value, or allows all. */
export function includes(values: readonly string[] | null | undefined, value: string): boolean {
  return values?.some((one) => one === '*' || one === value) === true;
}

/** What a binding says: a role, by `roleId`, is given to subjects. */
export interface BoundRole {
  readonly role: string;
  readonly subjects: readonly string[];
}

export function boundRole({ kind, namespace, roleRef, subjects }: Binding): BoundRole {
  const place = kind === 'RoleBinding' ? (namespace ?? '') : '';
  return {
    role: roleId(roleRef.kind, roleRef.kind === 'Role' ? place : undefined, roleRef.name),
    subjects: subjects.map((subject) =>
      subject.kind === 'ServiceAccount'
        ? subjectId(place, 'User', serviceAccount(subject.namespace, subject.name).user)
        : subjectId(place, subject.kind, subject.name),
    ),
  };
}

/** The subjects whose grants an account has. */
export function* subjectsOf({ user, groups, namespace = '' }: Account): Generator<string> {
  for (const place of namespace === '' ? [''] : ['', namespace]) {
    yield subjectId(place, 'User', user);
    for (const group of groups) {
      yield subjectId(place, 'Group', group);
    }
  }
}

/** A subject in a namespace; '' = in all of them. Namespaces contain no line breaks. */
function subjectId(namespace: string, kind: 'User' | 'Group', name: string): string {
  return `${namespace}\n${kind} ${name}`;
}

export function roleId(kind: string, namespace: string | undefined, name: string): string {
  return `${kind}\n${namespace ?? ''}\n${name}`;
}

/** The policies that one account may use, at one moment. */
export interface AccountPolicies {
  /** Names, sorted. */
  readonly names: readonly string[];
  /** All of them, merged. */
  readonly all: EffectivePolicy;
  /** Merged without the named ones. */
  without(names: ReadonlySet<string>): EffectivePolicy;
}

export interface PolicySource {
  /**
   * A promise only if a cluster must be called first: most answers are known, and waiting for one costs as
   * much as a review. Rejects with `SourceUnavailableError` if it is unknown which policies apply: then
   * nothing may be admitted.
   */
  policiesOf(account: Account, wait?: Wait): AccountPolicies | Promise<AccountPolicies>;
}

/** It is unknown which policies apply. The message is for the log: it may name the API server. */
export class SourceUnavailableError extends Error {
  override readonly name = 'SourceUnavailableError';
}
