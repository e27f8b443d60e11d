import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Account,
  type Binding,
  PolicyAccess,
  type Role,
  serviceAccount,
} from '../../../src/kubernetes/policies/access.ts';
import { readPolicyDocuments } from '../../../src/kubernetes/policies/documents/documents.ts';
import type { Rule, Subject } from '../../../src/kubernetes/policies/documents/rbac-schema.ts';
import { SchedulingPolicies } from '../../../src/kubernetes/policies/scheduling-policies.ts';
import { ANSWERS, type Answers, GROUPS, OBJECTS, POLICY_NAMES } from '../../support/access-questions.ts';
import { temporaryFile } from '../../support/files.ts';
import { boundIn, clusterRole, everywhere, roleIn } from './documents/roles.ts';

const POLICIES = ['gold', 'iron', 'silver'];
const RESOURCES = POLICIES.map((name) => ({ name, group: 'extensions' }));
const USE_GOLD: Rule = {
  apiGroups: ['extensions'],
  resources: ['schedulingpolicies'],
  verbs: ['use'],
  resourceNames: ['gold'],
};
const TO_BUILDER: Subject = { kind: 'ServiceAccount', name: 'builder', namespace: 'team' };

function usable(account: Account, roles: readonly Role[], bindings: readonly Binding[]): readonly string[] {
  return new PolicyAccess(RESOURCES, roles, bindings).usableBy(account);
}

it('bindings add to each other, each name once and in order', () => {
  const iron = { ...USE_GOLD, resourceNames: ['iron'] };
  const toAll: Subject = { kind: 'Group', name: 'system:authenticated' };
  const roles = [
    clusterRole('one', { ...USE_GOLD, resourceNames: ['silver', 'gold'] }),
    roleIn('team', 'one', iron, USE_GOLD),
  ];
  const bindings = [everywhere('one', toAll, TO_BUILDER), boundIn('team', 'Role', 'one', TO_BUILDER)];
  expect(usable(serviceAccount('team', 'builder'), roles, bindings)).toEqual(['gold', 'iron', 'silver']);
  expect(usable(serviceAccount('team', 'other'), roles, bindings)).toEqual(['gold', 'silver']);
});

describe('a subject', () => {
  const usableThrough = (subject: Subject, account: Account) =>
    usable(account, [clusterRole('one', USE_GOLD)], [everywhere('one', subject)]).length > 0;

  it.each([
    'x\nGroup admins',
    'Group admins',
    '\nGroup admins',
    'admins\n',
    'User root',
    'team\nUser root',
    '',
  ])('is not matched by a name that imitates another: %j', (name) => {
    const roles = [clusterRole('one', USE_GOLD)];
    const bindings = [
      everywhere('one', { kind: 'Group', name: 'admins' }, { kind: 'User', name: 'root' }),
      boundIn('team', 'ClusterRole', 'one', { kind: 'User', name: 'root' }),
    ];
    for (const namespace of [undefined, 'other']) {
      expect(usable({ user: name, groups: [name, `project:${name}`], namespace }, roles, bindings)).toEqual(
        [],
      );
    }
  });

  it.each(['__proto__', 'constructor', 'a\nb', '\u{1f600}', 'x'.repeat(10_000)])(
    'may have any name: %j',
    (name) => {
      expect(usableThrough({ kind: 'User', name }, { user: name, groups: [] })).toBe(true);
      expect(usableThrough({ kind: 'User', name }, { user: 'jane', groups: [name] })).toBe(false);
    },
  );
});

it('the list of grants has each subject once per namespace, in order, with existing policies', () => {
  const roles = [
    clusterRole('one', { ...USE_GOLD, resourceNames: ['silver', 'gone', 'gold'] }),
    clusterRole('all', { ...USE_GOLD, resourceNames: null }),
    clusterRole('none', { ...USE_GOLD, verbs: ['get'] }),
  ];
  const group: Subject = { kind: 'Group', name: 'a\nb' };
  const bindings = [
    boundIn('z', 'ClusterRole', 'one', group),
    everywhere('one', TO_BUILDER, group),
    boundIn('a', 'ClusterRole', 'all', group),
    boundIn('z', 'ClusterRole', 'one', group),
  ];
  expect(new PolicyAccess(RESOURCES, roles, bindings).grants()).toEqual([
    { subject: 'Group a\nb', namespace: undefined, policies: ['gold', 'silver'] },
    { subject: 'Group a\nb', namespace: 'a', policies: POLICIES },
    { subject: 'Group a\nb', namespace: 'z', policies: ['gold', 'silver'] },
    {
      subject: 'User system:serviceaccount:team:builder',
      namespace: undefined,
      policies: ['gold', 'silver'],
    },
  ]);
});

/** What an account may use, beside a walk through all roles and bindings. */
const OF_TWO_GROUPS = [
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
    policy: (typeof OF_TWO_GROUPS)[number],
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
          expect(new PolicyAccess(OF_TWO_GROUPS, roles, bindings).usableBy(who)).toEqual(
            OF_TWO_GROUPS.filter((policy) => mayUse(policy, who, roles, bindings)).map(({ name }) => name),
          );
        },
      ),
      { numRuns: 600 },
    );
  });
});

const { answers } = JSON.parse(readFileSync(ANSWERS, 'utf8')) as Answers;

it.each(GROUPS)(
  'policies of the group %s may be used exactly by those whom a SubjectAccessReview allows',
  (group) => {
    const policies = POLICY_NAMES.map((name) => ({
      apiVersion: `${group}/v1alpha1`,
      kind: 'SchedulingPolicy',
      metadata: { name },
      spec: {},
    }));
    const list = { apiVersion: 'v1', kind: 'List', items: [...policies, ...OBJECTS] };
    const documents = readPolicyDocuments([temporaryFile('roles.json', JSON.stringify(list))]);
    expect(documents.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    const scheduling = new SchedulingPolicies(documents);
    const usable = answers.map(({ user, groups, namespace }) => ({
      user,
      namespace,
      usable: scheduling.effectiveFor({ user, groups, namespace }).policies,
    }));
    expect(usable).toEqual(
      answers.map(({ user, namespace, usable: asked }) => ({ user, namespace, usable: asked[group] })),
    );
    expect(new Set(usable.map(({ usable: names }) => names.length))).toEqual(new Set([0, 1, 2]));
  },
);
