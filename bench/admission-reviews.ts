/** Scheduling policies of a cluster, and what its API server asks about pods. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './requests.ts';

export const ADMISSION_PATH = '/kubernetes/admission?timeout=10s';

/** Of a cluster that makes much of them. */
export const USED = { policies: 50, bindings: 200, others: 0 } as const;

/** As many as there are bindings for accounts. */
const ACCOUNTS = 200;

export interface PolicyCounts {
  /** Those that are bound to accounts, by turns. */
  readonly policies: number;
  readonly bindings: number;
  /** Those that nobody of them may use. */
  readonly others: number;
}

/** All in one text of YAML. Each account may use two policies: its own, and one that holds for all. */
export function policiesFor({ policies, bindings, others }: PolicyCounts): string {
  const names = Array.from({ length: policies - 1 }, (_, index) => `team-${index}`);
  const everyone = policy('everyone', {
    allowed: { schedulerNames: ['default-scheduler'], nodeSelectors: { disk: ['ssd', 'hdd'] } },
  });
  return [
    everyone,
    ...names.map((name, index) =>
      policy(name, {
        required: { nodeSelectors: { 'kubernetes.io/arch': ['amd64', 'arm64'] } },
        allowed: {
          nodeSelectors: { pool: [`pool-${index}`, 'shared'] },
          tolerations: [{ keys: ['team'], operators: ['Equal'], values: [name], effects: ['NoSchedule'] }],
        },
        default: { nodeSelector: { 'kubernetes.io/arch': 'amd64' } },
      }),
    ),
    ...Array.from({ length: others }, (_, index) =>
      policy(`other-${index}`, { allowed: { nodeSelectors: { pool: [`other-${index}`] } } }),
    ),
    ...['everyone', ...names].map((name) => role(name, [name])),
    role('others', others === 0 ? ['none'] : Array.from({ length: others }, (_, index) => `other-${index}`)),
    binding('everyone', 'everyone', { kind: 'Group', name: 'system:authenticated' }),
    binding('others', 'others', { kind: 'Group', name: 'others' }),
    ...Array.from({ length: bindings - 1 }, (_, index) =>
      binding(`account-${index}`, names[index % names.length] ?? 'everyone', {
        kind: 'ServiceAccount',
        name: `account-${index}`,
        namespace: 'research',
      }),
    ),
  ]
    .map((document) => JSON.stringify(document))
    .join('\n---\n');
}

/** A pod of an ordinary size, from one of the accounts, which asks for a disk. */
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

function policy(name: string, spec: object): object {
  return { apiVersion: 'extensions/v1alpha1', kind: 'SchedulingPolicy', metadata: { name }, spec };
}

function role(name: string, resourceNames: readonly string[]): object {
  const rules = [
    { apiGroups: ['extensions'], resources: ['schedulingpolicies'], verbs: ['use'], resourceNames },
  ];
  return { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name }, rules };
}

function binding(name: string, roleName: string, subject: object): object {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: roleName },
    subjects: [subject],
  };
}
