/** The users of one policy, by the roles and bindings of a cluster. */
import {
  type Account,
  type Binding,
  boundRole,
  grantsUse,
  type Role,
  roleId,
  serviceAccount,
} from '../../policies/access.ts';
import type { Subject } from '../../policies/documents/rbac-schema.ts';
import { compare } from '../../policies/merge.ts';
import { CLUSTER_GROUP } from '../../policies/policy.ts';
import type { ApiClient } from '../api/contract.ts';
import { readClusterRbac, sideBySide, type UseReviews } from './cluster-snapshot.ts';

/** One binding that grants the use of the policy to one subject. */
export interface PolicyUser {
  readonly subject: Subject;
  /** Where it may use the policy; `undefined` = in all namespaces. */
  readonly namespace: string | undefined;
  readonly role: Pick<Role, 'kind' | 'name'>;
  readonly binding: Pick<Binding, 'kind' | 'name' | 'namespace'>;
  /** Whether the API server confirms it. It may not if the binding was just removed. */
  readonly confirmed: boolean;
}

/** `namespace`: only its users there. Sorted by subject. @throws ApiError @throws ApiUnreachableError */
export async function whoCanUse(
  client: ApiClient,
  reviews: UseReviews,
  name: string,
  namespace?: string,
): Promise<PolicyUser[]> {
  const { roles, bindings } = await readClusterRbac(client, namespace);
  const granting = new Map(
    roles
      .filter((role) => grantsUse(role, { name, group: CLUSTER_GROUP }))
      .map((role) => [roleId(role.kind, role.namespace, role.name), role]),
  );
  const found = bindings.flatMap((one) => {
    const { kind, name: of, namespace: place, subjects } = one;
    const role = granting.get(boundRole(one).role);
    const binding = { kind, name: of, namespace: place };
    return role === undefined
      ? []
      : subjects.map((subject) => ({
          subject,
          namespace: place,
          role: { kind: role.kind, name: role.name },
          binding,
        }));
  });
  const answers = new Map<string, Promise<boolean>>();
  const users = await sideBySide(found, async (user) => {
    const account = accountOf(user.subject, user.namespace ?? namespace);
    const key = JSON.stringify(account);
    const answer = answers.get(key) ?? reviews.mayUse(account, name);
    answers.set(key, answer);
    return { ...user, confirmed: await answer };
  });
  return users.sort(
    (a, b) =>
      compare(subjectText(a.subject), subjectText(b.subject)) ||
      compare(a.namespace ?? '', b.namespace ?? '') ||
      compare(a.binding.name, b.binding.name),
  );
}

/** `ServiceAccount shop/web`, `Group system:authenticated` */
export function subjectText(subject: Subject): string {
  return subject.kind === 'ServiceAccount'
    ? `${subject.kind} ${subject.namespace}/${subject.name}`
    : `${subject.kind} ${subject.name}`;
}

/** A group is reviewed alone: as a user who is in no other group. */
function accountOf(subject: Subject, namespace: string | undefined): Account {
  switch (subject.kind) {
    case 'ServiceAccount':
      return { ...serviceAccount(subject.namespace, subject.name), namespace };
    case 'User':
      return { user: subject.name, groups: [], namespace };
    case 'Group':
      return { user: '', groups: [subject.name], namespace };
  }
}
