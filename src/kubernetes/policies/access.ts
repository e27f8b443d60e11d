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

export interface PolicyResource {
  readonly name: string;
  /** The policy's API group. Rules for another group do not match it. */
  readonly group: string;
}

type Grant = ReadonlySet<string>;

/** Grants are indexed by subject, so the cost of a lookup does not depend on the number of other subjects. */
export class PolicyAccess {
  /** Subjects of the same role share one grant. */
  readonly #grants = new Map<string, Set<Grant>>();

  constructor(policies: readonly PolicyResource[], roles: readonly Role[], bindings: readonly Binding[]) {
    const usable = new Map(
      roles.map((role) => [roleId(role.kind, role.namespace, role.name), usableBy(role, policies)]),
    );
    for (const { kind, namespace, roleRef, subjects } of bindings) {
      const from = roleRef.kind === 'Role' ? namespace : undefined;
      const grant = usable.get(roleId(roleRef.kind, from, roleRef.name));
      if (grant === undefined) {
        continue;
      }
      for (const subject of subjects) {
        const id = grantId(kind === 'RoleBinding' ? namespace : undefined, subjectName(subject));
        this.#grants.set(id, (this.#grants.get(id) ?? new Set()).add(grant));
      }
    }
  }

  grants(): AccessGrant[] {
    return [...this.#grants]
      .map(([id, grants]) => {
        const [namespace = '', subject = ''] = splitOnce(id);
        return {
          subject,
          namespace: namespace === '' ? undefined : namespace,
          policies: namesIn(grants),
        };
      })
      .sort((a, b) => compare(a.subject, b.subject) || compare(a.namespace ?? '', b.namespace ?? ''));
  }

  /** Names of the policies that an account may use, sorted. */
  usableBy({ user, groups, namespace }: Account): readonly string[] {
    const subjects = [`User ${user}`, ...groups.map((group) => `Group ${group}`)];
    const places = namespace === undefined ? [undefined] : [undefined, namespace];
    const grants = places.flatMap((place) =>
      subjects.flatMap((subject) => [...(this.#grants.get(grantId(place, subject)) ?? [])]),
    );
    return namesIn(new Set(grants));
  }
}

function namesIn(grants: ReadonlySet<Grant>): string[] {
  return [...new Set([...grants].flatMap((grant) => [...grant]))].sort();
}

export function grantsUse(role: Role, policy: PolicyResource): boolean {
  return usableBy(role, [policy]).size > 0;
}

/** A rule without resourceNames covers all policies of its API groups. Names have no wildcards. */
function usableBy({ rules }: Role, policies: readonly PolicyResource[]): Grant {
  const matching = rules.filter(
    ({ verbs, resources }) => includes(verbs, VERB) && includes(resources, RESOURCE),
  );
  const usable = policies.filter(({ name, group }) =>
    matching.some(
      ({ apiGroups, resourceNames }) =>
        includes(apiGroups, group) &&
        ((resourceNames ?? []).length === 0 || resourceNames?.includes(name) === true),
    ),
  );
  return new Set(usable.map(({ name }) => name));
}

/** Whether a list of a rule names a value, or all. */
export function includes(values: readonly string[] | null | undefined, value: string): boolean {
  return values?.some((one) => one === '*' || one === value) === true;
}

function subjectName(subject: Subject): string {
  return subject.kind === 'ServiceAccount'
    ? `User ${serviceAccount(subject.namespace, subject.name).user}`
    : `${subject.kind} ${subject.name}`;
}

/** Namespaces are never empty and contain no line breaks. */
function grantId(namespace: string | undefined, subject: string): string {
  return `${namespace ?? ''}\n${subject}`;
}

export function roleId(kind: string, namespace: string | undefined, name: string): string {
  return `${kind}\n${namespace ?? ''}\n${name}`;
}

/** Splits at the first line break: subject names may contain more of them. */
function splitOnce(id: string): [namespace: string, subject: string] {
  const end = id.indexOf('\n');
  return [id.slice(0, end), id.slice(end + 1)];
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
   * A promise only where a cluster must be asked first: most answers are known, and waiting for one costs as much as a review.
   * Rejects with `SourceUnavailableError` if it cannot be known which policies apply: then nothing may be admitted.
   */
  policiesOf(account: Account, wait?: Wait): AccountPolicies | Promise<AccountPolicies>;
}

/** It cannot be known which policies apply. The message is for the log: it may name the API server. */
export class SourceUnavailableError extends Error {
  override readonly name = 'SourceUnavailableError';
}
