import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ApiObject } from '../../../../src/kubernetes/cluster/api/contract.ts';
import type { Following } from '../../../../src/kubernetes/cluster/live/contract.ts';
import { RBAC_KINDS, RbacHint, type RbacKind } from '../../../../src/kubernetes/cluster/live/rbac-hint.ts';
import {
  type Account,
  type Binding,
  PolicyAccess,
  type Role,
  serviceAccount,
} from '../../../../src/kubernetes/policies/access.ts';
import type { Rule, Subject } from '../../../../src/kubernetes/policies/documents/rbac-schema.ts';

const GROUP = 'scheduling.blazar-enforcement';
const NAMES = ['gold', 'iron', 'silver'];
const LIN = serviceAccount('team', 'lin');
const CURRENT: Following = { hasList: true, currentAt: 0, problem: undefined };

let clock: number;
let hint: RbacHint;

beforeEach(() => {
  clock = 0;
  hint = followed();
});

function followed(options: { readonly most?: number } = {}): RbacHint {
  const one = new RbacHint({ now: () => clock, ...options });
  for (const kind of RBAC_KINDS) {
    one.follow(kind, { following: CURRENT });
  }
  return one;
}

function rule(resourceNames?: string[]): Rule {
  return { apiGroups: [GROUP], resources: ['schedulingpolicies'], verbs: ['use'], resourceNames };
}

const clusterRole = (name: string, ...rules: Rule[]) => ({ metadata: { name }, rules });
const subject = (name: string) => ({ kind: 'ServiceAccount', name, namespace: 'team' });
const bound = (name: string, role: string, ...subjects: object[]) => ({
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects,
});

function bindGold(): void {
  hint.listeners.clusterroles.changed(clusterRole('gold', rule(['gold'])));
  hint.listeners.clusterrolebindings.changed(bound('lin', 'gold', subject('lin')));
}

describe('roles and bindings of the cluster', () => {
  it('name the policies that are worth a review, whatever comes first', () => {
    bindGold();
    hint.listeners.clusterrolebindings.changed(bound('later', 'silver', subject('lin')));
    hint.listeners.clusterroles.changed(clusterRole('silver', rule(['silver', 'unknown'])));
    expect(hint.candidates(LIN, NAMES)).toEqual(['gold', 'silver']);
    expect(hint.candidates(serviceAccount('other', 'lin'), NAMES)).toEqual([]);
  });

  it('may have fields that nobody knows', () => {
    hint.listeners.clusterroles.changed({
      ...clusterRole('gold', { ...rule(['gold']), new: 1 } as Rule),
      more: { a: 1 },
    } as ApiObject);
    hint.listeners.clusterrolebindings.changed(bound('lin', 'gold', { ...subject('lin'), apiGroup: '' }));
    expect(hint.candidates(LIN, NAMES)).toEqual(['gold']);
  });
});

describe('nothing can be told', () => {
  it.each<[string, Following | undefined, RegExp]>([
    ['nobody follows', undefined, /^roles are not listed$/],
    [
      'may be listed',
      { hasList: false, currentAt: undefined, problem: '403 Forbidden' },
      /^roles are not listed: 403 Forbidden$/,
    ],
    [
      'are followed no more',
      { hasList: true, currentAt: -3001, problem: 'away' },
      /^roles are not followed: away$/,
    ],
    [
      'are followed by a watch that is silent',
      { hasList: true, currentAt: -12_001, problem: undefined },
      /^roles are not followed: the watch is silent$/,
    ],
  ])('while the roles that %s', (_, following, problem) => {
    const one = new RbacHint({ now: () => clock });
    for (const kind of RBAC_KINDS.filter((each) => each !== 'roles')) {
      one.follow(kind, { following: CURRENT });
    }
    if (following !== undefined) {
      one.follow('roles', { following });
    }
    expect(one.candidates(LIN, NAMES)).toBeUndefined();
    expect(one.problem).toMatch(problem);
  });

  it('but what is lost for a moment is still known', () => {
    hint.follow('roles', { following: { hasList: true, currentAt: -3000, problem: 'away' } });
    expect(hint.candidates(LIN, NAMES)).toEqual([]);
  });

  it.each<[RbacKind, object]>([
    ['clusterroles', { rules: 'all' }],
    ['roles', { rules: [{ verbs: 'use' }] }],
    ['clusterrolebindings', { subjects: [] }],
    ['rolebindings', { roleRef: { kind: 'SuperRole', name: 'x' } }],
    ['rolebindings', { roleRef: { kind: 'Role', name: 'x' }, subjects: [{ kind: 'Robot', name: 'x' }] }],
  ])('while an object of %s is odd: %j', (kind, fields) => {
    bindGold();
    const odd = { metadata: { name: 'odd', namespace: 'team' }, ...fields };
    hint.listeners[kind].changed(odd);
    expect(hint.candidates(LIN, NAMES)).toBeUndefined();
    expect(hint.problem).toBe(`${kind} team odd cannot be read`);
    hint.listeners[kind].removed(odd);
    expect(hint.candidates(LIN, NAMES)).toEqual(['gold']);
    hint.listeners[kind].replaced([odd]);
    expect(hint.candidates(LIN, NAMES)).toBeUndefined();
    hint.listeners[kind].replaced([]);
    expect(hint.problem).toBeUndefined();
  });
});

describe('a change', () => {
  it('is told for those whom it concerns', () => {
    clock = 5;
    bindGold();
    const { version } = hint;
    clock = 7;
    hint.listeners.clusterrolebindings.changed(bound('ann', 'gold', subject('ann')));
    expect(hint.version).toBeGreaterThan(version);
    expect(hint.changedAt(LIN)).toBe(5);
    expect(hint.changedAt(serviceAccount('team', 'ann'))).toBe(7);
    expect(hint.changedAt(serviceAccount('team', 'joe'))).toBe(Number.NEGATIVE_INFINITY);
    clock = 9;
    hint.listeners.clusterroles.changed(clusterRole('gold', rule(['gold', 'iron'])));
    expect(hint.changedAt(LIN)).toBe(9);
    clock = 11;
    hint.listeners.clusterrolebindings.removed(bound('lin', 'gold'));
    expect(hint.changedAt(LIN)).toBe(11);
  });

  it('is none where a list says the same again, or nobody may use another policy', () => {
    bindGold();
    const { version } = hint;
    hint.listeners.clusterroles.replaced([clusterRole('gold', rule(['gold']))]);
    hint.listeners.clusterrolebindings.replaced([bound('lin', 'gold', subject('lin'))]);
    hint.listeners.clusterroles.changed(clusterRole('pods', { ...rule(), resources: ['pods'] }));
    hint.listeners.clusterrolebindings.changed(bound('pods', 'pods', subject('lin')));
    expect(hint.version).toBe(version);
  });
});

it('takes everything for changed when too much has changed to be remembered', () => {
  hint = followed({ most: 1 });
  bindGold();
  expect(hint.changedAt(serviceAccount('team', 'joe'))).toBe(Number.NEGATIVE_INFINITY);
  clock = 7;
  hint.listeners.clusterrolebindings.changed(bound('lin', 'gold', subject('ann'), subject('eve')));
  expect(hint.changedAt(serviceAccount('team', 'joe'))).toBe(7);
});

describe('for any changes', () => {
  const some = <Value>(...values: Value[]) =>
    fc.option(fc.uniqueArray(fc.constantFrom(...values), { maxLength: 2 }), { freq: 5 });
  const rules = fc.array(
    fc.record<Rule>({
      verbs: some('use', '*', 'get'),
      apiGroups: some('extensions', GROUP, '*'),
      resources: some('schedulingpolicies', '*', 'pods'),
      resourceNames: some(...NAMES, '*'),
    }),
    { maxLength: 2 },
  );
  const place = fc.constantFrom('team', 'other');
  const name = fc.constantFrom('one', 'two');
  const subjects: fc.Arbitrary<Subject[]> = fc.array(
    fc.oneof(
      fc.record({
        kind: fc.constant('ServiceAccount' as const),
        name: fc.constantFrom('a', 'b'),
        namespace: place,
      }),
      fc.record({
        kind: fc.constantFrom('Group' as const, 'User' as const),
        name: fc.constantFrom(
          'system:authenticated',
          'system:serviceaccounts:team',
          'system:serviceaccount:team:a',
        ),
      }),
    ),
    { maxLength: 3 },
  );
  const roleRef = fc.record({ kind: fc.constantFrom('Role', 'ClusterRole'), name });
  const object = fc.oneof(
    fc.record({ kind: fc.constant('roles' as const), namespace: place, name, rules }),
    fc.record({ kind: fc.constant('clusterroles' as const), namespace: fc.constant(undefined), name, rules }),
    fc.record({ kind: fc.constant('rolebindings' as const), namespace: place, name, roleRef, subjects }),
    fc.record({
      kind: fc.constant('clusterrolebindings' as const),
      namespace: fc.constant(undefined),
      name,
      roleRef: roleRef.map((ref) => ({ ...ref, kind: 'ClusterRole' })),
      subjects,
    }),
  );
  type Changed = typeof object extends fc.Arbitrary<infer Value> ? Value : never;
  const change = fc.tuple(fc.constantFrom('changed', 'changed', 'removed', 'replaced'), object);

  const asObject = ({ kind: _, namespace, name: id, ...rest }: Changed): ApiObject => ({
    metadata: { namespace, name: id },
    ...rest,
  });

  it('candidates are what roles and bindings grant, changes are told, and nothing remains', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 25 }), (changes) => {
        const index = followed();
        const there = new Map<string, Changed>();
        const accounts: Account[] = [
          serviceAccount('team', 'a'),
          serviceAccount('team', 'b'),
          serviceAccount('other', 'a'),
          { user: 'system:serviceaccount:team:a', groups: [] },
        ];
        let before: (readonly string[])[] = accounts.map(() => []);
        for (const [how, one] of changes) {
          clock += 1;
          const id = `${one.kind} ${one.namespace} ${one.name}`;
          if (how === 'changed') {
            there.set(id, one);
            index.listeners[one.kind].changed(asObject(one));
          } else if (how === 'removed') {
            there.delete(id);
            index.listeners[one.kind].removed(asObject(one));
          } else {
            for (const [key, other] of there) {
              if (other.kind === one.kind) {
                there.delete(key);
              }
            }
            there.set(id, one);
            index.listeners[one.kind].replaced([asObject(one)]);
          }
          const all = [...there.values()];
          const access = new PolicyAccess(
            NAMES.map((policy) => ({ name: policy, group: GROUP })),
            all.flatMap((each): Role[] =>
              'rules' in each
                ? [{ ...each, kind: each.kind === 'roles' ? 'Role' : 'ClusterRole', rules: each.rules }]
                : [],
            ),
            all.flatMap((each): Binding[] =>
              'roleRef' in each
                ? [{ ...each, kind: each.kind === 'rolebindings' ? 'RoleBinding' : 'ClusterRoleBinding' }]
                : [],
            ),
          );
          const now = accounts.map((account) => access.usableBy(account));
          expect(accounts.map((account) => index.candidates(account, NAMES))).toEqual(now);
          accounts.forEach((account, at) => {
            if (String(before[at]) !== String(now[at])) {
              expect(index.changedAt(account)).toBe(clock);
            }
          });
          before = now;
        }
        for (const kind of RBAC_KINDS) {
          index.listeners[kind].replaced([]);
        }
        expect(accounts.flatMap((account) => index.candidates(account, NAMES))).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });
});
