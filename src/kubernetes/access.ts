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

/** What somebody may use. */
interface Grant {
  all: boolean;
  readonly names: Set<string>;
}

/** Found by who is asked about, so that it costs the same however many others there are. */
export class PolicyAccess {
  readonly #all: readonly string[];
  readonly #grants = new Map<string, Grant>();

  /** `groups`: the API groups in which policies are; `policies`: the names of all there are, in order. */
  constructor(
    policies: readonly string[],
    roles: readonly Role[],
    bindings: readonly Binding[],
    groups: readonly string[],
  ) {
    this.#all = policies;
    const known = new Set(policies);
    const usable = new Map(
      roles.map((role) => [roleId(role.kind, role.namespace, role.name), usableBy(role, groups)]),
    );
    for (const { kind, namespace, roleRef, subjects } of bindings) {
      const from = roleRef.kind === 'Role' ? namespace : undefined;
      const grant = usable.get(roleId(roleRef.kind, from, roleRef.name));
      if (grant === undefined) {
        continue;
      }
      for (const subject of subjects) {
        const id = grantId(kind === 'RoleBinding' ? namespace : undefined, subjectName(subject));
        const sum = this.#grants.get(id) ?? { all: false, names: new Set() };
        sum.all ||= grant.all;
        for (const name of grant.names) {
          if (known.has(name)) {
            sum.names.add(name);
          }
        }
        this.#grants.set(id, sum);
      }
    }
  }

  /** All of them, sorted by subject and namespace. */
  grants(): AccessGrant[] {
    return [...this.#grants]
      .map(([id, { all, names }]) => {
        const [namespace = '', subject = ''] = splitOnce(id);
        return {
          subject,
          namespace: namespace === '' ? undefined : namespace,
          policies: all ? this.#all : [...names].sort(),
        };
      })
      .sort((a, b) => compare(a.subject, b.subject) || compare(a.namespace ?? '', b.namespace ?? ''));
  }

  /** The names of the policies that an account may use, in the order of names. */
  usableBy({ user, groups, namespace }: Account): readonly string[] {
    const subjects = [`User ${user}`, ...groups.map((group) => `Group ${group}`)];
    const places = namespace === undefined ? [undefined] : [undefined, namespace];
    const grants = places.flatMap((place) =>
      subjects.flatMap((subject) => this.#grants.get(grantId(place, subject)) ?? []),
    );
    if (grants.some(({ all }) => all)) {
      return this.#all;
    }
    const names = new Set(grants.flatMap((grant) => [...grant.names]));
    return [...names].sort();
  }
}

/** A rule without names is about all of them; a name has no wildcard. */
function usableBy({ rules }: Role, groups: readonly string[]): Grant {
  const matching = rules.filter(
    ({ verbs, apiGroups, resources }) =>
      includes(verbs, VERB) &&
      groups.some((group) => includes(apiGroups, group)) &&
      includes(resources, RESOURCE),
  );
  return {
    all: matching.some(({ resourceNames }) => (resourceNames ?? []).length === 0),
    names: new Set(matching.flatMap(({ resourceNames }) => resourceNames ?? [])),
  };
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
