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

const POLICIES = ['gold', 'iron', 'silver'];
const RESOURCES = POLICIES.map((name) => ({ name, group: 'extensions' }));
const USE_GOLD: Rule = {
  apiGroups: ['extensions'],
  resources: ['schedulingpolicies'],
  verbs: ['use'],
  resourceNames: ['gold'],
};
const BUILDER = serviceAccount('team', 'builder');
const TO_BUILDER: Subject = { kind: 'ServiceAccount', name: 'builder', namespace: 'team' };

function usable(account: Account, roles: readonly Role[], bindings: readonly Binding[]): readonly string[] {
  return new PolicyAccess(RESOURCES, roles, bindings).usableBy(account);
}

/** What one rule lets a service account use that it is bound to. */
function usableByRule(rule: Rule): readonly string[] {
  return usable(BUILDER, [clusterRole('one', rule)], [everywhere('one', TO_BUILDER)]);
}

describe('a rule', () => {
  it.each<[string, Partial<Rule>]>([
    ['is about this verb', { verbs: ['get', 'use'] }],
    ['has a wildcard for verbs', { verbs: ['*'] }],
    ['is about other groups too', { apiGroups: ['', 'apps', 'extensions'] }],
    ['has a wildcard for groups', { apiGroups: ['*'] }],
    ['has a wildcard for resources', { resources: ['*'] }],
    ['is about other resources too', { resources: ['pods', 'schedulingpolicies'] }],
  ])('grants if it %s', (_, part) => {
    expect(usableByRule({ ...USE_GOLD, ...part })).toEqual(['gold']);
  });

  it.each<[string, Partial<Rule>]>([
    ['another verb', { verbs: ['get', 'list', 'Use', 'us*'] }],
    ['no verb', { verbs: [] }],
    ['another group', { apiGroups: ['', 'apps', 'extensions/v1alpha1', 'ext*'] }],
    ['the group of other policies', { apiGroups: ['scheduling.blazar-enforcement'] }],
    ['no group', { apiGroups: null }],
    ['another resource', { resources: ['podsecuritypolicies', 'SchedulingPolicies', 'scheduling*'] }],
    ['a part of the resource', { resources: ['schedulingpolicies/status', 'schedulingpolicies/*'] }],
    ['no resource', { resources: undefined }],
    ['paths instead of resources', { resources: [], nonResourceURLs: ['*'] }],
  ])('grants nothing for %s', (_, part) => {
    expect(usableByRule({ ...USE_GOLD, ...part })).toEqual([]);
    expect(usableByRule({ ...USE_GOLD, resourceNames: null, ...part })).toEqual([]);
  });

  it('without resourceNames covers all policies', () => {
    for (const resourceNames of [undefined, null, []]) {
      expect(usableByRule({ ...USE_GOLD, resourceNames })).toEqual(POLICIES);
    }
  });

  it('covers only policies of its API groups, with and without resourceNames', () => {
    const policies = [
      { name: 'gold', group: 'scheduling.blazar-enforcement' },
      { name: 'silver', group: 'extensions' },
    ];
    const usableWith = (rule: Partial<Rule>) =>
      new PolicyAccess(
        policies,
        [clusterRole('one', { ...USE_GOLD, ...rule })],
        [everywhere('one', TO_BUILDER)],
      ).usableBy(BUILDER);
    // As the administrator of a namespace has it.
    const everything = { apiGroups: ['', 'extensions', 'apps'], resources: ['*'], verbs: ['*'] };
    expect(usableWith({ ...everything, resourceNames: null })).toEqual(['silver']);
    expect(usableWith({ ...everything, resourceNames: ['gold', 'silver'] })).toEqual(['silver']);
    expect(usableWith({ apiGroups: ['scheduling.blazar-enforcement'], resourceNames: [] })).toEqual(['gold']);
    expect(usableWith({ apiGroups: ['*'], resourceNames: [] })).toEqual(['gold', 'silver']);
  });

  it('matches names literally, without wildcards', () => {
    for (const resourceNames of [['*'], ['g*'], ['Gold'], ['gold '], [''], ['bronze', 'constructor']]) {
      expect(usableByRule({ ...USE_GOLD, resourceNames })).toEqual([]);
    }
    expect(usableByRule({ ...USE_GOLD, resourceNames: ['silver', '*', 'gold', 'gold'] })).toEqual([
      'gold',
      'silver',
    ]);
  });

  it('is not combined with another rule of its role', () => {
    const rules = [
      { ...USE_GOLD, verbs: ['get'], resourceNames: null },
      { ...USE_GOLD, apiGroups: ['apps'], resourceNames: ['silver'] },
    ];
    expect(usable(BUILDER, [clusterRole('one', ...rules)], [everywhere('one', TO_BUILDER)])).toEqual([]);
  });
});

describe('a binding', () => {
  const toAll: Subject = { kind: 'Group', name: 'system:authenticated' };
  const iron = { ...USE_GOLD, resourceNames: ['iron'] };

  it('of the cluster applies in every namespace, and without one', () => {
    const bindings = [everywhere('one', toAll)];
    for (const account of [
      BUILDER,
      serviceAccount('other', 'x'),
      { user: 'jane', groups: ['system:authenticated'] },
    ]) {
      expect(usable(account, [clusterRole('one', USE_GOLD)], bindings)).toEqual(['gold']);
    }
  });

  it('of a namespace applies only there', () => {
    const roles = [clusterRole('one', USE_GOLD)];
    const bindings = [boundIn('team', 'ClusterRole', 'one', toAll)];
    expect(usable(BUILDER, roles, bindings)).toEqual(['gold']);
    expect(usable(serviceAccount('other', 'builder'), roles, bindings)).toEqual([]);
    expect(usable({ user: 'jane', groups: ['system:authenticated'] }, roles, bindings)).toEqual([]);
    const jane = { user: 'jane', groups: ['system:authenticated'], namespace: 'team' };
    expect(usable(jane, roles, bindings)).toEqual(['gold']);
  });

  it('can name an account of another namespace', () => {
    const bindings = [boundIn('other', 'ClusterRole', 'one', TO_BUILDER)];
    const roles = [clusterRole('one', USE_GOLD)];
    expect(usable({ ...BUILDER, namespace: 'other' }, roles, bindings)).toEqual(['gold']);
    expect(usable(BUILDER, roles, bindings)).toEqual([]);
  });

  it('to a Role refers to its own namespace', () => {
    const roles = [roleIn('team', 'one', USE_GOLD), roleIn('other', 'one', iron)];
    expect(usable(BUILDER, roles, [boundIn('team', 'Role', 'one', toAll)])).toEqual(['gold']);
    expect(usable(BUILDER, roles.slice(1), [boundIn('team', 'Role', 'one', toAll)])).toEqual([]);
  });

  it('does not confuse a ClusterRole with a Role of the same name', () => {
    const roles = [clusterRole('one', USE_GOLD), roleIn('team', 'one', iron)];
    expect(usable(BUILDER, roles, [boundIn('team', 'ClusterRole', 'one', toAll)])).toEqual(['gold']);
    expect(usable(BUILDER, roles, [boundIn('team', 'Role', 'one', toAll)])).toEqual(['iron']);
    expect(usable(BUILDER, roles.slice(0, 1), [boundIn('team', 'Role', 'one', toAll)])).toEqual([]);
    expect(usable(BUILDER, roles.slice(1), [boundIn('team', 'ClusterRole', 'one', toAll)])).toEqual([]);
  });

  it('to a missing role, or without subjects, grants nothing', () => {
    expect(usable(BUILDER, [clusterRole('one', USE_GOLD)], [everywhere('two', toAll)])).toEqual([]);
    expect(usable(BUILDER, [clusterRole('one', USE_GOLD)], [everywhere('one')])).toEqual([]);
  });

  it('adds to other grants, each name once and in order', () => {
    const roles = [
      clusterRole('one', { ...USE_GOLD, resourceNames: ['silver', 'gold'] }),
      roleIn('team', 'one', iron, USE_GOLD),
    ];
    const bindings = [everywhere('one', toAll, TO_BUILDER), boundIn('team', 'Role', 'one', TO_BUILDER)];
    expect(usable(BUILDER, roles, bindings)).toEqual(['gold', 'iron', 'silver']);
    expect(usable(serviceAccount('team', 'other'), roles, bindings)).toEqual(['gold', 'silver']);
  });

  it('to all policies is not reduced by others, in any order', () => {
    const roles = [clusterRole('one', USE_GOLD), clusterRole('all', { ...USE_GOLD, resourceNames: [] })];
    const bindings = [everywhere('all', toAll), everywhere('one', toAll)];
    expect(usable(BUILDER, roles, bindings)).toEqual(POLICIES);
    expect(usable(BUILDER, roles, bindings.toReversed())).toEqual(POLICIES);
  });

  it('to all policies in one namespace grants nothing in another', () => {
    const roles = [clusterRole('one', USE_GOLD), clusterRole('all', { ...USE_GOLD, resourceNames: [] })];
    const bindings = [everywhere('one', toAll), boundIn('team', 'ClusterRole', 'all', toAll)];
    expect(usable(BUILDER, roles, bindings)).toEqual(POLICIES);
    expect(usable(serviceAccount('kube-system', 'builder'), roles, bindings)).toEqual(['gold']);
  });
});

describe('a subject', () => {
  const usableThrough = (subject: Subject, account: Account) =>
    usable(account, [clusterRole('one', USE_GOLD)], [everywhere('one', subject)]).length > 0;

  it.each<[string, Subject]>([
    ['ServiceAccount', TO_BUILDER],
    ['User', { kind: 'User', name: 'system:serviceaccount:team:builder' }],
    ['Group', { kind: 'Group', name: 'system:serviceaccounts' }],
    ['Group', { kind: 'Group', name: 'system:serviceaccounts:team' }],
    ['Group', { kind: 'Group', name: 'system:authenticated' }],
  ])('a service account is a %s: %j', (_, subject) => {
    expect(usableThrough(subject, BUILDER)).toBe(true);
  });

  it.each<[Subject]>([
    [{ kind: 'ServiceAccount', name: 'builder', namespace: 'other' }],
    [{ kind: 'ServiceAccount', name: 'Builder', namespace: 'team' }],
    [{ kind: 'Group', name: 'system:serviceaccounts:other' }],
    [{ kind: 'Group', name: 'system:serviceaccounts:tea' }],
    [{ kind: 'Group', name: 'system:serviceaccount:team:builder' }],
    [{ kind: 'Group', name: 'system:unauthenticated' }],
    [{ kind: 'Group', name: '*' }],
    [{ kind: 'User', name: '*' }],
    [{ kind: 'User', name: 'builder' }],
    [{ kind: 'User', name: 'system:authenticated' }],
  ])('it is not %j', (subject) => {
    expect(usableThrough(subject, BUILDER)).toBe(false);
  });

  it('is matched by kind as well as by name', () => {
    expect(usableThrough({ kind: 'Group', name: 'jane' }, { user: 'jane', groups: [] })).toBe(false);
    expect(usableThrough({ kind: 'User', name: 'admins' }, { user: 'jane', groups: ['admins'] })).toBe(false);
    expect(usableThrough({ kind: 'Group', name: 'admins' }, { user: 'jane', groups: ['x', 'admins'] })).toBe(
      true,
    );
  });

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

describe('the list of grants', () => {
  it('has each subject once per namespace, in order, with existing policies', () => {
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
});
