/** Random roles, bindings and accounts, against a walk through all of them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Account,
  type Binding,
  PolicyAccess,
  type Role,
  serviceAccount,
} from '../../../src/kubernetes/policies/access.ts';
import type { Rule, Subject } from '../../../src/kubernetes/policies/documents/rbac-schema.ts';
import { boundIn, clusterRole, everywhere, roleIn } from './documents/roles.ts';

const RESOURCES = [
  { name: 'gold', group: 'extensions' },
  { name: 'iron', group: 'scheduling.blazar-enforcement' },
  { name: 'silver', group: 'extensions' },
];

describe('for any roles and bindings', () => {
  const some = <Value>(...values: Value[]) =>
    fc.option(fc.uniqueArray(fc.constantFrom(...values), { maxLength: 2 }), { freq: 5 });
  const rule: fc.Arbitrary<Rule> = fc.record({
    verbs: some('use', '*', 'get'),
    apiGroups: some('extensions', 'scheduling.blazar-enforcement', '*', 'apps'),
    resources: some('schedulingpolicies', '*', 'pods'),
    resourceNames: some('gold', 'iron', 'silver', '*', 'gone'),
  });
  const namespace = fc.constantFrom('team', 'other');
  const name = fc.constantFrom('one', 'two');
  const rules = fc.array(rule, { maxLength: 3 });
  const role = fc.oneof(
    fc.tuple(namespace, name, rules).map(([place, id, all]) => roleIn(place, id, ...all)),
    fc.tuple(name, rules).map(([id, all]) => clusterRole(id, ...all)),
  );
  const subject: fc.Arbitrary<Subject> = fc.oneof(
    fc.record({ kind: fc.constant('ServiceAccount' as const), name: fc.constantFrom('a', 'b'), namespace }),
    fc.record({
      kind: fc.constant('Group' as const),
      name: fc.constantFrom('system:authenticated', 'system:serviceaccounts:team', 'admins'),
    }),
    fc.record({
      kind: fc.constant('User' as const),
      name: fc.constantFrom('jane', 'admins', 'system:serviceaccount:other:a'),
    }),
  );
  const subjects = fc.array(subject, { maxLength: 2 });
  const binding = fc.oneof(
    fc.tuple(name, subjects).map(([id, all]) => everywhere(id, ...all)),
    fc
      .tuple(namespace, fc.constantFrom('Role', 'ClusterRole'), name, subjects)
      .map(([place, kind, id, all]) => boundIn(place, kind, id, ...all)),
  );
  const account: fc.Arbitrary<Account> = fc.oneof(
    fc.tuple(namespace, fc.constantFrom('a', 'b')).map((parts) => serviceAccount(...parts)),
    fc.record({
      user: fc.constant('jane'),
      groups: fc.constant(['admins']),
      namespace: fc.option(namespace, { nil: undefined }),
    }),
  );
  const roleKey = (one: Role) => `${one.kind} ${one.namespace} ${one.name}`;

  /** As the words of Kubernetes have it: some binding, some subject, its role, some rule. */
  function mayUse(
    policy: (typeof RESOURCES)[number],
    who: Account,
    roles: readonly Role[],
    bindings: readonly Binding[],
  ): boolean {
    const has = (list: readonly string[] | null | undefined, ...wanted: string[]) =>
      list?.includes('*') || wanted.some((one) => list?.includes(one));
    return bindings.some(
      (bound) =>
        (bound.kind === 'ClusterRoleBinding' || bound.namespace === who.namespace) &&
        bound.subjects.some((one) =>
          one.kind === 'Group'
            ? who.groups.includes(one.name)
            : who.user ===
              (one.kind === 'ServiceAccount'
                ? `system:serviceaccount:${one.namespace}:${one.name}`
                : one.name),
        ) &&
        roles.some(
          (one) =>
            one.kind === bound.roleRef.kind &&
            one.name === bound.roleRef.name &&
            (one.kind === 'ClusterRole' || one.namespace === bound.namespace) &&
            one.rules.some(
              ({ verbs, apiGroups, resources, resourceNames }) =>
                has(verbs, 'use') &&
                has(apiGroups, policy.group) &&
                has(resources, 'schedulingpolicies') &&
                (!resourceNames?.length || resourceNames.includes(policy.name)),
            ),
        ),
    );
  }

  it('an account may use what a naive search finds', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(role, { selector: roleKey, maxLength: 5 }),
        fc.array(binding, { maxLength: 5 }),
        account,
        (roles, bindings, who) => {
          expect(new PolicyAccess(RESOURCES, roles, bindings).usableBy(who)).toEqual(
            RESOURCES.filter((policy) => mayUse(policy, who, roles, bindings)).map(({ name }) => name),
          );
        },
      ),
      { numRuns: 2000 },
    );
  });
});
