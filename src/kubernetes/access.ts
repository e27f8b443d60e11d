/**
 * Who may use which policy. Role-based access control as Kubernetes has it, for the verb `use`.
 * Source: Kubernetes docs, "Using RBAC Authorization".
 */
import type { Rule, Subject } from './rbac-schema.ts';

const RESOURCE = 'schedulingpolicies';
const VERB = 'use';

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

/** Who asks: a user with groups, and in which namespace; without one only what holds everywhere counts. */
export interface Account {
  readonly user: string;
  readonly groups: readonly string[];
  readonly namespace?: string | undefined;
}

/** The user that a service account is, with the groups that it has by itself. */
export function serviceAccount(namespace: string, name: string): Account {
  return {
    user: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    namespace,
  };
}

/** What bindings give to one subject, in one namespace or in all. */
export interface AccessGrant {
  /** `User lin`, `Group system:authenticated`; a service account is the user that it is. */
  readonly subject: string;
  /** `undefined` = in all. */
  readonly namespace: string | undefined;
  /** The names of policies that there are, in order. */
  readonly policies: readonly string[];
}

/** A policy, as RBAC tells it from others. */
export interface PolicyResource {
  readonly name: string;
  /** The API group of the policy itself: a rule about another group is not about it. */
  readonly group: string;
}

/** The names of the policies that somebody may use. */
type Grant = ReadonlySet<string>;

/** Grants are found by subject, so an answer costs the same however many other subjects there are. */
export class PolicyAccess {
  /** Many subjects share what one role grants. */
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

  /** All of them, sorted by subject and namespace. */
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

  /** The names of the policies that an account may use, in the order of names. */
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

/** A rule without names is about all policies of its API groups. A name has no wildcard. */
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

function includes(values: readonly string[] | null | undefined, value: string): boolean {
  return values?.some((one) => one === '*' || one === value) === true;
}

function subjectName(subject: Subject): string {
  return subject.kind === 'ServiceAccount'
    ? `User ${serviceAccount(subject.namespace, subject.name).user}`
    : `${subject.kind} ${subject.name}`;
}

/** No namespace holds a line end, nor is one empty. */
function grantId(namespace: string | undefined, subject: string): string {
  return `${namespace ?? ''}\n${subject}`;
}

function roleId(kind: string, namespace: string | undefined, name: string): string {
  return `${kind}\n${namespace ?? ''}\n${name}`;
}

/** The name of a subject may hold anything. */
function splitOnce(id: string): [namespace: string, subject: string] {
  const end = id.indexOf('\n');
  return [id.slice(0, end), id.slice(end + 1)];
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
