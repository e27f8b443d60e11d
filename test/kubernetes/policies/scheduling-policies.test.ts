import { describe, expect, it } from 'vitest';
import { ConfigurationError, formatProblem } from '../../../src/base/errors.ts';
import { type Account, serviceAccount } from '../../../src/kubernetes/policies/access.ts';
import {
  SchedulingPolicies,
  type SchedulingPoliciesOptions,
} from '../../../src/kubernetes/policies/scheduling-policies.ts';
import { temporaryFile } from '../../support/files.ts';

const RBAC = 'apiVersion: rbac.authorization.k8s.io/v1';
const RULE = 'apiGroups: [extensions], resources: [schedulingpolicies], verbs: [use]';

/** `silver` is for everybody, `gold` for those of `team`, `iron` for the user `jane`. */
const TEXT = `
kind: SchedulingPolicy
metadata: {name: silver}
spec: {allowed: {schedulerNames: [silver]}}
---
kind: SchedulingPolicy
metadata: {name: gold}
spec: {allowed: {schedulerNames: [gold]}}
---
kind: SchedulingPolicy
metadata: {name: iron}
spec: {required: {schedulerNames: [iron]}}
---
kind: List
items:
- {${RBAC}, kind: ClusterRole, metadata: {name: silver}, rules: [{${RULE}, resourceNames: [silver]}]}
- {${RBAC}, kind: ClusterRole, metadata: {name: iron}, rules: [{${RULE}, resourceNames: [iron]}]}
- {${RBAC}, kind: Role, metadata: {name: gold, namespace: team}, rules: [{${RULE}, resourceNames: [gold]}]}
- ${RBAC}
  kind: ClusterRoleBinding
  metadata: {name: silver}
  roleRef: {kind: ClusterRole, name: silver}
  subjects: [{kind: Group, name: 'system:authenticated'}]
- ${RBAC}
  kind: ClusterRoleBinding
  metadata: {name: iron}
  roleRef: {kind: ClusterRole, name: iron}
  subjects: [{kind: User, name: jane}]
- ${RBAC}
  kind: RoleBinding
  metadata: {name: gold, namespace: team}
  roleRef: {kind: Role, name: gold}
  subjects: [{kind: Group, name: 'system:serviceaccounts:team'}]
`;

function read(text = TEXT, options?: SchedulingPoliciesOptions): SchedulingPolicies {
  const { policies, warnings } = SchedulingPolicies.read([temporaryFile('all.yaml', text)], options);
  expect(warnings).toEqual([]);
  return policies;
}

const TEAM = serviceAccount('team', 'builder');
const OTHER = serviceAccount('other', 'builder');
const JANE: Account = { user: 'jane', groups: ['system:authenticated'] };

describe('reading', () => {
  it('returns the policies sorted by name, and their grants', () => {
    const policies = read();
    expect(policies.policies.map(({ name }) => name)).toEqual(['gold', 'iron', 'silver']);
    expect(policies.effectiveFor(TEAM).policies).toEqual(['gold', 'silver']);
    expect(policies.effectiveFor(OTHER).policies).toEqual(['silver']);
    expect(policies.effectiveFor(JANE).policies).toEqual(['iron', 'silver']);
    expect(policies.effectiveFor({ user: 'x', groups: [] }).policies).toEqual([]);
  });

  it('throws with all errors and warnings of all files', () => {
    const files = [
      temporaryFile('a.yaml', 'kind: SchedulingPolicy\nspec: {required: {schedulerNames: []}, x: 1}\n'),
      temporaryFile('b.yaml', 'kind: Pod\n'),
      temporaryFile(
        'c.yaml',
        `${RBAC}\nkind: ClusterRoleBinding\nmetadata: {name: c}\nroleRef: {kind: ClusterRole, name: gone}\n`,
      ),
      '/nowhere/d.yaml',
    ];
    let thrown: unknown;
    try {
      SchedulingPolicies.read(files);
    } catch (caught) {
      thrown = caught;
    }
    expect(thrown).toBeInstanceOf(ConfigurationError);
    const { problems, message } = thrown as ConfigurationError;
    const places = problems.map((problem) => formatProblem(problem).split(': ').slice(0, 2));
    expect(places.map(([place = '', field]) => [place.replace(/^.*\//, ''), field])).toEqual([
      ['d.yaml', 'could not be read'],
      ['a.yaml:2', 'spec.required.schedulerNames'],
      ['a.yaml:2', 'spec.x'],
      ['b.yaml:1', 'kind'],
      ['c.yaml:4', 'roleRef.name'],
    ]);
    expect(message.split('\n')).toHaveLength(4);
    expect(message).not.toContain('gone');
  });

  it('returns warnings with the policies', () => {
    const text = `${TEXT}---\n${RBAC}\nkind: ClusterRole\nmetadata: {name: x}\nrules: [{${RULE}, resourceNames: [sliver]}]\n`;
    const file = temporaryFile('all.yaml', text);
    const { policies, warnings } = SchedulingPolicies.read([file]);
    expect(policies.effectiveFor(OTHER).policies).toEqual(['silver']);
    expect(warnings.map(formatProblem)).toEqual([
      `${file}:38: rules[0].resourceNames[0]: there is no SchedulingPolicy "sliver"; the nearest right name is "silver"`,
    ]);
    expect(warnings.map(({ severity }) => severity)).toEqual(['warning']);
  });
});

describe('what applies to an account', () => {
  const names = (policies: SchedulingPolicies, account: Account) =>
    policies.effectiveFor(account).merged.flatMap((merged) => merged.policies);

  it('are cached for the same account', () => {
    const policies = read();
    const first = policies.policiesOf(TEAM);
    expect(policies.policiesOf(serviceAccount('team', 'builder'))).toBe(first);
    expect(policies.policiesOf({ ...TEAM, groups: [...TEAM.groups] })).toBe(first);
  });

  it('differ for another user, other groups and another namespace', () => {
    const policies = read();
    const first = policies.policiesOf(TEAM);
    expect(policies.policiesOf({ ...TEAM, user: 'x' })).not.toBe(first);
    expect(policies.policiesOf({ ...TEAM, groups: [] })).not.toBe(first);
    expect(policies.policiesOf({ ...TEAM, namespace: 'other' })).not.toBe(first);
    expect(policies.policiesOf({ ...TEAM, namespace: undefined })).not.toBe(first);
    expect(names(policies, { ...TEAM, namespace: 'other' })).toEqual(['silver']);
    expect(names(policies, { ...TEAM, groups: ['system:authenticated'] })).toEqual(['silver']);
  });

  it('do not confuse names that could be concatenated alike', () => {
    const policies = read();
    const split = { user: 'a', groups: ['b', 'system:authenticated'] };
    const joined = { user: 'a,b', groups: ['system:authenticated'] };
    const quoted = { user: 'a","b', groups: ['system:authenticated'] };
    expect(new Set([split, joined, quoted].map((account) => policies.policiesOf(account))).size).toBe(3);
  });

  it('can be computed without some policies', () => {
    const policies = read().policiesOf(TEAM);
    const names = (...left: string[]) => policies.without(new Set(left)).policies;
    expect(policies.names).toEqual(['gold', 'silver']);
    expect(names('gold', 'no')).toEqual(['silver']);
    expect(names('silver')).toEqual(['gold']);
    expect(names()).toEqual(['gold', 'silver']);
    expect(policies.all.policies).toEqual(['gold', 'silver']);
  });
});
