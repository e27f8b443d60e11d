/** The policies and roles of etc/kubernetes: which pods they allow and refuse. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serviceAccount } from '../../../src/kubernetes/policies/access.ts';
import { readPolicyDocuments } from '../../../src/kubernetes/policies/documents/documents.ts';
import { EffectivePolicy, type PodReview } from '../../../src/kubernetes/policies/effective-policy.ts';
import { SchedulingPolicies } from '../../../src/kubernetes/policies/scheduling-policies.ts';
import { pod, reasonsOf } from '../../support/scheduling-policies.ts';
import { FOLDER } from './manifests.ts';

const FILES = [join(FOLDER, 'policies.yaml'), join(FOLDER, 'roles.yaml')];

/** What the API server fills in before webhooks see a pod. */
const FILLED_IN = {
  schedulerName: 'default-scheduler',
  serviceAccountName: 'default',
  preemptionPolicy: 'PreemptLowerPriority',
  priority: 0,
  tolerations: ['not-ready', 'unreachable'].map((what) => ({
    key: `node.kubernetes.io/${what}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: 300,
  })),
};
/** A pod of the DaemonSet controller. */
const OF_DAEMON_SET = {
  ...FILLED_IN,
  tolerations: [
    ...['not-ready', 'unreachable'].map((what) => [what, 'NoExecute']),
    ...['disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable', 'network-unavailable'].map(
      (what) => [what, 'NoSchedule'],
    ),
  ].map(([what, effect]) => ({ key: `node.kubernetes.io/${what}`, operator: 'Exists', effect })),
};
const GPU = { key: 'gpu', operator: 'Exists', effect: 'NoSchedule' };
const forNode = (...matchExpressions: unknown[]) => ({
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [
        {
          ...(matchExpressions.length > 0 && { matchExpressions }),
          matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-1'] }],
        },
      ],
    },
  },
});
const labelIn = (key: string, ...values: string[]) => ({ key, operator: 'In', values });

const { policies, warnings } = SchedulingPolicies.read(FILES);
const review = (namespace: string, spec: unknown, isForOneNode = false): PodReview =>
  policies
    .effectiveFor(serviceAccount(namespace, 'default'))
    .review(pod(spec), { addDefaults: true, isForOneNode });
/** With one of the policies alone. */
const reviewBy = (name: string, spec: unknown): PodReview =>
  new EffectivePolicy(
    policies.policies.filter((one) => one.name === name),
    'deep',
  ).review(pod(spec), { addDefaults: true });

describe('the policies and roles of etc/kubernetes', () => {
  it('are read without a mistake or a warning', () => {
    expect(warnings).toEqual([]);
    const { policies: read, roles, bindings, problems } = readPolicyDocuments(FILES);
    expect(problems).toEqual([]);
    expect([read.length, roles.length, bindings.length]).toEqual([4, 2, 2]);
  });

  it('give everyone `restricted`, and kube-system also `privileged`', () => {
    expect(policies.effectiveFor(serviceAccount('shop', 'web')).policies).toEqual(['restricted']);
    expect(policies.effectiveFor(serviceAccount('kube-system', 'coredns')).policies).toEqual([
      'privileged',
      'restricted',
    ]);
    const guest = { ...serviceAccount('shop', 'web'), namespace: 'kube-system' };
    expect(policies.effectiveFor(guest).policies).toEqual(['restricted']);
    expect(
      policies.effectiveFor({ user: 'system:anonymous', groups: ['system:unauthenticated'] }).policies,
    ).toEqual([]);
  });

  it('allow an ordinary pod and change nothing', () => {
    for (const spec of [{}, FILLED_IN]) {
      const before = pod(spec);
      expect(review('shop', spec)).toEqual({ allowed: true, pod: before, reasons: [] });
    }
  });

  it('allow the pods of an ordinary DaemonSet', () => {
    expect(reasonsOf(review('shop', { ...OF_DAEMON_SET, affinity: forNode() }, true))).toEqual([]);
  });

  it.each([
    ['a toleration', { tolerations: [...FILLED_IN.tolerations, GPU] }, 'tolerations[2]'],
    ['a node selector', { nodeSelector: { disk: 'ssd' } }, 'nodeSelector'],
    ['another scheduler', { schedulerName: 'green-scheduler' }, 'schedulerName'],
    ['a priority class', { priorityClassName: 'high' }, 'priorityClassName'],
    ['an affinity', { affinity: forNode() }, 'affinity'],
    ['a node', { nodeName: 'node-1' }, 'nodeName'],
  ])('refuse an ordinary pod with %s, and allow it in kube-system', (_, asked, field) => {
    const spec = { ...FILLED_IN, ...asked };
    expect(review('shop', spec).allowed).toBe(false);
    expect(reasonsOf(review('shop', spec)).join()).toContain(field);
    expect(reasonsOf(review('kube-system', spec))).toEqual([]);
  });

  it('choose an architecture and a system by node selector', () => {
    const name = 'restricted-multiarch-by-node-selector';
    const { allowed, pod: completed } = reviewBy(name, FILLED_IN);
    expect(allowed).toBe(true);
    expect(completed.spec).toEqual({
      ...FILLED_IN,
      nodeSelector: { 'kubernetes.io/arch': 'amd64', 'kubernetes.io/os': 'linux' },
    });
    expect(reviewBy(name, { nodeSelector: { 'kubernetes.io/arch': 'arm64' } }).allowed).toBe(true);
    expect(reviewBy(name, { nodeSelector: { 'kubernetes.io/arch': 's390x' } }).allowed).toBe(false);
  });

  it('choose an architecture and a system by affinity: both labels, not one of them', () => {
    const name = 'restricted-multiarch-by-affinity';
    const { allowed, pod: completed } = reviewBy(name, FILLED_IN);
    expect(allowed).toBe(true);
    const both = [labelIn('kubernetes.io/arch', 'amd64'), labelIn('kubernetes.io/os', 'linux')];
    const affinity = (...terms: unknown[][]) => ({
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: terms.map((matchExpressions) => ({ matchExpressions })),
        },
      },
    });
    expect(completed.spec).toEqual({ ...FILLED_IN, affinity: affinity(both) });
    const others = [labelIn('kubernetes.io/arch', 'arm64'), labelIn('kubernetes.io/os', 'windows')];
    expect(reviewBy(name, { affinity: affinity(both, others) }).allowed).toBe(true);
    expect(
      reviewBy(name, { affinity: affinity([labelIn('kubernetes.io/arch', 's390x'), ...both.slice(1)]) })
        .allowed,
    ).toBe(false);
    expect(reviewBy(name, { affinity: affinity(both, both.slice(0, 1)) }).allowed).toBe(false);
  });
});
