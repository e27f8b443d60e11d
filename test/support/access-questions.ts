/**
 * Roles and bindings of every shape, and questions about access to policies. The answers of a real API server
 * (test/peers) are in test/fixtures/kubernetes/access-answers.json.
 */
import { projectFile } from './files.ts';

export const ANSWERS = projectFile('test/fixtures/kubernetes/access-answers.json');

export const GROUPS = ['extensions', 'scheduling.blazar-enforcement'] as const;
const [DRAFT, OWN] = GROUPS;
const POLICIES = 'schedulingpolicies';

type Rule = Readonly<
  Record<'apiGroups' | 'resources' | 'verbs' | 'resourceNames' | 'nonResourceURLs', string[]>
>;

/** A rule that grants use of `gold` in the group of a CustomResourceDefinition, except for these parts. */
function rule(parts: Partial<Rule> = {}): Partial<Rule> {
  return { apiGroups: [OWN], resources: [POLICIES], verbs: ['use'], resourceNames: ['gold'], ...parts };
}

const ALL_NAMES = { resourceNames: [] };
const EVERYTHING = { resources: ['*'], verbs: ['*'], resourceNames: [] };

/** Rules of a ClusterRole by name; a service account of the same name is bound to it in the whole cluster. */
const SHAPES: Readonly<Record<string, readonly Partial<Rule>[]>> = {
  plain: [rule()],
  'all-names': [rule(ALL_NAMES)],
  'several-names': [rule({ resourceNames: ['silver', '*', 'gold'] })],
  'name-wildcard': [rule({ resourceNames: ['*'] })],
  'name-prefix': [rule({ resourceNames: ['g*'] })],
  'name-other-case': [rule({ resourceNames: ['Gold'] })],
  'draft-group': [rule({ apiGroups: [DRAFT] })],
  'both-groups': [rule({ apiGroups: [DRAFT, OWN] })],
  'group-wildcard': [rule({ apiGroups: ['*'] })],
  'group-with-version': [rule({ apiGroups: [`${OWN}/v1alpha1`] })],
  'group-prefix': [rule({ apiGroups: ['scheduling*', 'ext*'] })],
  'core-group': [rule({ apiGroups: [''], ...EVERYTHING })],
  'namespace-admin': [rule({ apiGroups: ['', DRAFT, 'apps'], ...EVERYTHING })],
  'verb-wildcard': [rule({ verbs: ['*'] })],
  'other-verbs': [rule({ verbs: ['get', 'list', 'create', 'bind', 'impersonate', 'escalate'] })],
  'verb-other-case': [rule({ verbs: ['Use', 'USE'] })],
  'verb-prefix': [rule({ verbs: ['us*', 'use '] })],
  'resource-wildcard': [rule({ resources: ['*'] })],
  'resource-subresource': [rule({ resources: [`${POLICIES}/status`, `${POLICIES}/*`] })],
  'any-subresource': [rule({ resources: ['*/use', '*/*'] })],
  'resource-other-case': [rule({ resources: ['SchedulingPolicies', 'schedulingpolicy', 'scheduling*'] })],
  'other-resource': [rule({ resources: ['podsecuritypolicies', 'pods'] })],
  urls: [{ nonResourceURLs: ['*'], verbs: ['*'] }],
  'not-together': [
    rule({ verbs: ['get'], resourceNames: [] }),
    rule({ apiGroups: [DRAFT], resourceNames: ['silver'] }),
  ],
  everything: [rule({ apiGroups: ['*'], ...EVERYTHING })],
};

const RBAC = { apiVersion: 'rbac.authorization.k8s.io/v1' };
const ROLE_GROUP = 'rbac.authorization.k8s.io';

function clusterRole(name: string, rules: readonly object[], labels: object = {}) {
  return { ...RBAC, kind: 'ClusterRole', metadata: { name, labels }, rules };
}

function binding(
  name: string,
  role: readonly [kind: string, name: string],
  subjects: readonly object[],
  namespace?: string,
) {
  return {
    ...RBAC,
    kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { name, ...(namespace !== undefined && { namespace }) },
    roleRef: { apiGroup: ROLE_GROUP, kind: role[0], name: role[1] },
    subjects,
  };
}

const account = (name: string, namespace = 'team') => ({ kind: 'ServiceAccount', name, namespace });
const group = (name: string) => ({ kind: 'Group', apiGroup: ROLE_GROUP, name });
const user = (name: string) => ({ kind: 'User', apiGroup: ROLE_GROUP, name });

/** Selects the roles with a label of this name. */
function aggregate(
  name: string,
  selectors: readonly object[],
  { rules = [], labels = {} }: { rules?: object[]; labels?: object } = {},
) {
  return { ...clusterRole(name, rules, labels), aggregationRule: { clusterRoleSelectors: selectors } };
}

const AGGREGATES = [
  clusterRole('part-gold', [rule()], { part: 'gold' }),
  clusterRole('part-silver', [rule({ resourceNames: ['silver'] })], { part: 'silver' }),
  aggregate('of-gold', [{ matchLabels: { part: 'gold' } }], { labels: { whole: 'yes' } }),
  aggregate('of-either', [{ matchLabels: { part: 'gold' } }, { matchLabels: { part: 'silver' } }]),
  aggregate('of-in', [{ matchExpressions: [{ key: 'part', operator: 'In', values: ['silver', 'x'] }] }]),
  aggregate('of-not-in', [
    {
      matchExpressions: [
        { key: 'part', operator: 'Exists' },
        { key: 'part', operator: 'NotIn', values: ['gold'] },
      ],
    },
  ]),
  aggregate('of-both', [{ matchLabels: { part: 'gold', whole: 'yes' } }]),
  aggregate('of-aggregate', [{ matchLabels: { whole: 'yes' } }]),
  aggregate('of-nothing', [{ matchLabels: { part: 'nobody' } }]),
  aggregate('written', [{ matchLabels: { part: 'silver' } }], { rules: [rule()] }),
  aggregate('circle', [{ matchLabels: { circle: 'yes' } }], { labels: { circle: 'yes' } }),
  aggregate('other-circle', [{ matchLabels: { circle: 'yes' } }, { matchLabels: { part: 'gold' } }], {
    labels: { circle: 'yes' },
  }),
];

const named = (names: string[]) => [rule({ resourceNames: names })];

/** All roles and bindings, as one Kubernetes List. */
export const OBJECTS: readonly object[] = [
  ...Object.entries(SHAPES).flatMap(([name, rules]) => [
    clusterRole(`shape-${name}`, rules),
    binding(`shape-${name}`, ['ClusterRole', `shape-${name}`], [account(name)]),
  ]),
  ...AGGREGATES,
  ...AGGREGATES.map(({ metadata: { name } }) => binding(name, ['ClusterRole', name], [account(name)])),
  clusterRole('gold', named(['gold'])),
  clusterRole('silver', named(['silver'])),
  clusterRole('same-name', named(['gold'])),
  { ...RBAC, kind: 'Role', metadata: { name: 'same-name', namespace: 'team' }, rules: named(['silver']) },
  { ...RBAC, kind: 'Role', metadata: { name: 'only-here', namespace: 'team' }, rules: named(['gold']) },
  binding('in-team', ['ClusterRole', 'gold'], [account('in-team'), account('in-team', 'other')], 'team'),
  binding('role-here', ['Role', 'same-name'], [account('role-here')], 'team'),
  binding('cluster-role-here', ['ClusterRole', 'same-name'], [account('cluster-role-here')], 'team'),
  binding('elsewhere', ['Role', 'only-here'], [account('elsewhere')], 'other'),
  binding('missing', ['ClusterRole', 'missing'], [account('missing')]),
  binding(
    'no-namespace',
    ['ClusterRole', 'gold'],
    [{ kind: 'ServiceAccount', name: 'no-namespace' }],
    'team',
  ),
  binding('to-authenticated', ['ClusterRole', 'silver'], [group('system:authenticated')], 'authenticated'),
  binding('to-accounts', ['ClusterRole', 'silver'], [group('system:serviceaccounts')], 'accounts'),
  binding('to-accounts-of-team', ['ClusterRole', 'silver'], [group('system:serviceaccounts:team')], 'ofteam'),
  binding('to-wildcards', ['ClusterRole', 'silver'], [group('*'), user('*')], 'wildcards'),
  binding('to-user', ['ClusterRole', 'silver'], [user('system:serviceaccount:team:by-user'), user('jane')]),
  binding('to-group', ['ClusterRole', 'gold'], [group('admins'), group('Jane')]),
];

export interface Question {
  readonly user: string;
  readonly groups: readonly string[];
  readonly namespace?: string;
}

function asAccount(name: string, at = 'team', of = 'team'): Question {
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${of}`, 'system:authenticated'];
  return { user: `system:serviceaccount:${of}:${name}`, groups, namespace: at };
}

export const QUESTIONS: readonly Question[] = [
  ...Object.keys(SHAPES).map((name) => asAccount(name)),
  ...AGGREGATES.map(({ metadata: { name } }) => asAccount(name)),
  ...[
    'in-team',
    'role-here',
    'cluster-role-here',
    'elsewhere',
    'missing',
    'no-namespace',
    'by-user',
    'nobody',
  ].flatMap((name) => [asAccount(name), asAccount(name, 'other'), asAccount(name, 'team', 'other')]),
  ...['authenticated', 'accounts', 'ofteam', 'wildcards'].flatMap((at) => [
    asAccount('nobody', at),
    asAccount('nobody', at, 'other'),
    { user: 'jane', groups: ['system:authenticated'], namespace: at },
    { user: '*', groups: ['*'], namespace: at },
  ]),
  { user: 'jane', groups: [] },
  { user: 'Jane', groups: ['Admins', 'jane'] },
  { user: 'joe', groups: ['admins'] },
  { user: 'joe', groups: ['admins'], namespace: 'team' },
  { user: 'admins', groups: [] },
];

/** The answers of a real API server: for each question, the usable policies of each group. */
export interface Answers {
  readonly server: string;
  readonly answers: readonly (Question & { readonly usable: Readonly<Record<string, readonly string[]>> })[];
}

export const POLICY_NAMES = ['gold', 'silver'] as const;
