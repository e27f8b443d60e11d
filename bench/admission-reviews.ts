/** Generates scheduling policies and admission requests about pods. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PolicyDocuments } from '../src/kubernetes/policies/documents/documents.ts';
import type { WrittenSpec } from '../src/kubernetes/policies/documents/policy-schema.ts';
import type { Subject } from '../src/kubernetes/policies/documents/rbac-schema.ts';
import { schedulingPolicy } from '../src/kubernetes/policies/policy.ts';
import { ROOT } from './requests.ts';

export const ADMISSION_PATH = '/kubernetes/admission?timeout=10s';

/** For a cluster with many policies. */
export const USED = { policies: 50, bindings: 200, others: 0 } as const;

/** The number of accounts with bindings. */
const ACCOUNTS = 200;

export interface PolicyCounts {
  /** Number of policies, bound to accounts in rotation. */
  readonly policies: number;
  readonly bindings: number;
  /** Number of policies that no account may use. */
  readonly others: number;
}

/** The documents of a cluster. Each account may use two policies: its own and a common one. */
export interface ClusterDocuments {
  readonly policies: readonly { readonly name: string; readonly spec: WrittenSpec }[];
  readonly roles: readonly { readonly name: string; readonly resourceNames: string[] }[];
  readonly bindings: readonly {
    readonly name: string;
    readonly role: string;
    readonly subject: Subject;
  }[];
}

export function clusterDocuments({ policies, bindings, others }: PolicyCounts): ClusterDocuments {
  const teams = Array.from({ length: policies - 1 }, (_, index) => `team-${index}`);
  const strangers = Array.from({ length: others }, (_, index) => `other-${index}`);
  return {
    policies: [
      {
        name: 'everyone',
        spec: {
          allowed: { schedulerNames: ['default-scheduler'], nodeSelectors: { disk: ['ssd', 'hdd'] } },
        },
      },
      ...teams.map((name, index) => ({
        name,
        spec: {
          required: { nodeSelectors: { 'kubernetes.io/arch': ['amd64', 'arm64'] } },
          allowed: {
            nodeSelectors: { pool: [`pool-${index}`, 'shared'] },
            tolerations: [
              {
                keys: ['team'],
                operators: ['Equal' as const],
                values: [name],
                effects: ['NoSchedule' as const],
              },
            ],
          },
          default: { nodeSelector: { 'kubernetes.io/arch': 'amd64' } },
        },
      })),
      ...strangers.map((name) => ({ name, spec: { allowed: { nodeSelectors: { pool: [name] } } } })),
    ],
    roles: [
      ...['everyone', ...teams].map((name) => ({ name, resourceNames: [name] })),
      { name: 'strangers', resourceNames: strangers },
    ],
    bindings: [
      { name: 'everyone', role: 'everyone', subject: { kind: 'Group', name: 'system:authenticated' } },
      ...strangers
        .slice(0, 1)
        .map((name) => ({ name, role: 'strangers', subject: { kind: 'Group' as const, name: 'strangers' } })),
      ...Array.from({ length: bindings - 1 }, (_, index) => ({
        name: `account-${index}`,
        role: teams[index % teams.length] ?? 'everyone',
        subject: { kind: 'ServiceAccount' as const, name: `account-${index}`, namespace: 'research' },
      })),
    ],
  };
}

/** For leases: every label is allowed, and users of project q get one more. */
export const LEASE_DOCUMENTS: ClusterDocuments = {
  policies: [
    { name: 'everyone', spec: { allowed: { nodeSelectors: {} } } },
    { name: 'changing', spec: { default: { nodeSelector: { zone: 'a' } } } },
  ],
  roles: ['everyone', 'changing'].map((name) => ({ name, resourceNames: [name] })),
  bindings: [
    { name: 'everyone', role: 'everyone', subject: { kind: 'Group', name: 'system:authenticated' } },
    { name: 'changing', role: 'changing', subject: { kind: 'Group', name: 'project:q' } },
  ],
};

/** As YAML. */
export function policyFile(documents: ClusterDocuments): string {
  const { roles, bindings } = rbacObjects(documents, 'extensions');
  const policies = documents.policies.map(({ name, spec }) => ({
    apiVersion: 'extensions/v1alpha1',
    kind: 'SchedulingPolicy',
    metadata: { name },
    spec,
  }));
  return [...policies, ...roles, ...bindings].map((document) => JSON.stringify(document)).join('\n---\n');
}

/** In the API server's format. `group`: of the policies. */
export function rbacObjects({ roles, bindings }: ClusterDocuments, group: string) {
  const rbac = 'rbac.authorization.k8s.io';
  return {
    roles: roles.map(({ name, resourceNames }) => ({
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name },
      rules: [{ ...RULE, apiGroups: [group], resourceNames }],
    })),
    bindings: bindings.map(({ name, role, subject }) => ({
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
      subjects: [subject],
    })),
  };
}

/** Already parsed: parsing ten thousand takes seconds. */
export function policyDocuments({ policies, roles, bindings }: ClusterDocuments): PolicyDocuments {
  return {
    policies: policies.map(({ name, spec }) => schedulingPolicy(name, spec)),
    roles: roles.map(({ name, resourceNames }) => ({
      kind: 'ClusterRole',
      name,
      namespace: undefined,
      rules: [{ ...RULE, resourceNames }],
    })),
    bindings: bindings.map(({ name, role, subject }) => ({
      kind: 'ClusterRoleBinding',
      name,
      namespace: undefined,
      roleRef: { kind: 'ClusterRole', name: role },
      subjects: [subject],
    })),
    problems: [],
  };
}

const RULE = { apiGroups: ['extensions'], resources: ['schedulingpolicies'], verbs: ['use'] };

/** A pod of typical size from one of the accounts, with a node selector for a disk. */
export function reviewText(account: number, disk = 'ssd'): string {
  const review = JSON.parse(
    readFileSync(join(ROOT, 'test/fixtures/kubernetes/admission/create-by-replica-set.json'), 'utf8'),
  );
  const { object } = review.request;
  review.request.namespace = 'research';
  object.metadata.namespace = 'research';
  object.spec.serviceAccountName = `account-${account % (ACCOUNTS - 1)}`;
  object.spec.nodeSelector = { disk, 'kubernetes.io/arch': 'amd64' };
  return JSON.stringify(review);
}

export function reviewTexts(): string[] {
  return Array.from({ length: 64 }, (_, index) => reviewText(index * 3));
}
