import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../../src/base/errors.ts';
import {
  type PolicyDocuments,
  readPolicyDocuments,
} from '../../../../src/kubernetes/policies/documents/documents.ts';
import type { SchedulingPolicy } from '../../../../src/kubernetes/policies/policy.ts';
import { temporaryFile } from '../../../support/files.ts';
import { folderOf, temporaryFolder } from '../../../support/filter-folder.ts';

const RBAC = 'apiVersion: rbac.authorization.k8s.io/v1';

/** What is read where nothing is wrong. */
function readFrom(...paths: string[]): PolicyDocuments {
  const documents = readPolicyDocuments(paths);
  expect(documents.problems.map(formatProblem)).toEqual([]);
  return documents;
}

function readText(text: string): PolicyDocuments {
  return readFrom(temporaryFile('all.yaml', text));
}

/** The policy of a spec in the flow style. */
function policyOf(spec: string): SchedulingPolicy | undefined {
  return readText(`kind: SchedulingPolicy\nmetadata: {name: a}\nspec: ${spec}\n`).policies[0];
}

const namesIn = ({ policies }: PolicyDocuments) => policies.map(({ name }) => name);
const named = (name: string) => `kind: SchedulingPolicy\nmetadata: {name: ${name}}\nspec: {}\n`;

describe('a policy', () => {
  it.each(['extensions/v1alpha1', 'extensions/valpha1', 'scheduling.blazar-enforcement/v1alpha1'])(
    'may be of version %s',
    (version) => {
      expect(namesIn(readText(`apiVersion: ${version}\n${named('a')}`))).toEqual(['a']);
    },
  );

  it('without a name is named after its file', () => {
    const spec = 'spec: {}\n';
    const folder = folderOf({
      'one.yaml': `Kind: SchedulingPolicy\n${spec}`,
      'two.yml': `kind: SchedulingPolicy\nmetadata:\n${spec}`,
      'three.json': '{"kind": "SchedulingPolicy", "metadata": {"labels": {}}, "spec": {}}',
      'four.v1.yaml': `kind: SchedulingPolicy\n${spec}`,
    });
    expect(namesIn(readFrom(folder))).toEqual(['four.v1', 'one', 'three', 'two']);
  });

  it('means the same in the spellings of the draft', () => {
    const meant = policyOf(
      `{required: {schedulerNames: [a], priorityClassNames: [b]}, default: {schedulerName: a, priorityClassName: b},
        allowed: {schedulerNames: [], priorityClassNames: [c], affinities: {podAffinities: {}}}}`,
    );
    const draft = policyOf(
      `{required: {SchedulerNames: [a], priorityClasseNames: [b]}, default: {SchedulerName: a, priorityClasseName: b},
        allowed: {SchedulerNames: [], priorityClasseNames: [c]}, allowedAffinities: {podAffinities: {}}}`,
    );
    expect(draft).toStrictEqual(meant);
    expect(meant).toStrictEqual({
      name: 'a',
      group: 'extensions',
      required: { schedulerNames: ['a'], priorityClassNames: ['b'] },
      allowed: { schedulerNames: [], priorityClassNames: ['c'], affinities: { podAffinities: {} } },
      default: { schedulerName: 'a', priorityClassName: 'b' },
    });
  });

  it('treats null as absent', () => {
    const nothing = { name: 'a', group: 'extensions', required: {}, allowed: {}, default: {} };
    expect(policyOf('{}')).toStrictEqual(nothing);
    expect(policyOf('{required: null, allowed: ~, default: , allowedAffinities: null}')).toStrictEqual(
      nothing,
    );
    expect(policyOf('{required: {schedulerNames: , priorityClasseNames: null}}')).toStrictEqual(nothing);
    expect(
      policyOf('{allowed: {tolerations: null, nodeSelectors: ~}, default: {tolerations: ~, affinity: ~}}'),
    ).toStrictEqual(nothing);
  });

  it('may have labels with any name and an empty value', () => {
    const labels = '{constructor: [""], toString: [x], hasOwnProperty: [], "a\\nb": [y]}';
    expect(
      policyOf(`{allowed: {nodeSelectors: ${labels}}, default: {nodeSelector: {valueOf: ""}}}`),
    ).toMatchObject({
      allowed: {
        nodeSelectors: { constructor: [''], toString: ['x'], hasOwnProperty: [], 'a\nb': ['y'] },
      },
      default: { nodeSelector: { valueOf: '' } },
    });
  });
});

describe('roles and bindings', () => {
  it('are read with kind, namespace and name', () => {
    const role = (kind: string, namespace: string) =>
      `${RBAC}\nkind: ${kind}\nmetadata: {name: one${namespace}}\nrules: [{verbs: [use], resources: ['*']}]\n`;
    const { roles } = readText(
      [role('Role', ', namespace: a'), role('Role', ', namespace: b'), role('ClusterRole', '')].join('---\n'),
    );
    const rules = [{ verbs: ['use'], resources: ['*'] }];
    expect(roles).toEqual([
      { kind: 'Role', name: 'one', namespace: 'a', rules },
      { kind: 'Role', name: 'one', namespace: 'b', rules },
      { kind: 'ClusterRole', name: 'one', namespace: undefined, rules },
    ]);
  });

  it('refer to the account of their own namespace by default', () => {
    const role = `${RBAC}\nkind: Role\nmetadata: {name: r, namespace: team}\n`;
    const subjects = '[{kind: ServiceAccount, name: a}, {kind: ServiceAccount, name: a, namespace: other}]';
    const binding = `${RBAC}\nkind: RoleBinding\nmetadata: {name: b, namespace: team}\nroleRef: {kind: Role, name: r}\nsubjects: ${subjects}\n`;
    expect(readText(`${role}---\n${binding}`).bindings[0]?.subjects).toEqual([
      { kind: 'ServiceAccount', name: 'a', namespace: 'team' },
      { kind: 'ServiceAccount', name: 'a', namespace: 'other' },
    ]);
  });

  it('with other API groups than the named policy are a warning', () => {
    const rule = (groups: string) =>
      `{apiGroups: ${groups}, resources: [schedulingpolicies], resourceNames: [p]}`;
    const role = (groups: string) =>
      `${RBAC}\nkind: ClusterRole\nmetadata: {name: r}\nrules: [${rule(groups)}]\n---\n${named('p')}`;
    const problemsOf = (text: string) =>
      readPolicyDocuments([temporaryFile('p.yaml', text)]).problems.map(({ severity, message }) => [
        severity,
        message,
      ]);
    expect(problemsOf(role('[extensions]'))).toEqual([]);
    expect(problemsOf(role('["*"]'))).toEqual([]);
    expect(problemsOf(role('[scheduling.blazar-enforcement, apps]'))).toEqual([
      [
        'warning',
        'rules[0].resourceNames[0]: "p" is in the API group extensions, which apiGroups does not list',
      ],
    ]);
  });

  it('with an aggregationRule have the selected rules, with a warning about others', () => {
    const use = (name: string) =>
      `{apiGroups: [extensions], resources: [schedulingpolicies], verbs: [use], resourceNames: [${name}]}`;
    const role = (name: string, rules: string, more: string) =>
      `${RBAC}\nkind: ClusterRole\nmetadata: {name: ${name}, labels: {to: ${name}}}\nrules: [${rules}]\n${more}`;
    const whole = 'aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: part}}]}\n';
    const documents = (rules: string) =>
      readPolicyDocuments([
        temporaryFile(
          'p.yaml',
          [role('part', use('p'), ''), role('whole', rules, whole), named('p'), named('q')].join('---\n'),
        ),
      ]);
    expect(documents('').roles.map(({ rules }) => rules[0]?.resourceNames)).toEqual([['p'], ['p']]);
    expect(documents(use('p')).problems).toEqual([]);
    const { roles, problems } = documents(`${use('p')}, ${use('q')}`);
    expect(roles[1]?.rules).toHaveLength(1);
    expect(problems).toMatchObject([
      { severity: 'warning', message: expect.stringContaining('rules that none of them has do not count') },
    ]);
  });
});

it('a list of objects is read like single documents', () => {
  const list = 'apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ""}\nitems:\n';
  const policies = [
    '- kind: SchedulingPolicy\n  metadata: {name: a}\n  spec: {}\n',
    `- {${named('b').replaceAll('\n', ', ')}}\n`,
  ];
  expect(namesIn(readText(`${list}${policies.join('')}---\n${named('c')}`))).toEqual(['a', 'b', 'c']);
});

describe('files and folders', () => {
  it('are read in the given order, and in a folder by name', () => {
    const folder = folderOf({
      'b.yaml': named('b'),
      'B.yml': named('B'),
      'a.json': '{"kind": "List", "items": []}',
    });
    const file = temporaryFile('first.txt', `${named('y')}---\n${named('x')}`);
    expect(namesIn(readFrom(file, folder))).toEqual(['y', 'x', 'B', 'b']);
    expect(namesIn(readFrom(folder, file))).toEqual(['B', 'b', 'y', 'x']);
  });

  it('are read from a mounted ConfigMap: through links, without hidden files', () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, '..data'));
    writeFileSync(join(folder, '..data', 'a.yaml'), named('a'));
    symlinkSync(join('..data', 'a.yaml'), join(folder, 'a.yaml'));
    writeFileSync(join(folder, '.b.yaml'), 'broken: [');
    writeFileSync(join(folder, 'README.md'), '# no policy');
    writeFileSync(join(folder, 'a.yaml~'), 'broken: [');
    expect(namesIn(readFrom(folder))).toEqual(['a']);
  });
});
