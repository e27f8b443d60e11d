import { describe, expect, it } from 'vitest';
import { Findings, type Judged } from '../../../../src/kubernetes/cluster/scan/findings.ts';
import { asAskedFor } from '../../../../src/kubernetes/cluster/scan/scan.ts';
import { ownerOf } from '../../../../src/kubernetes/cluster/scan/scanned-objects.ts';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const owned = (kind: string, name: string, labels = {}) =>
  ownerOf(
    {
      labels,
      ownerReferences: [
        { kind: 'Other', name: 'x' },
        { kind, name, controller: true },
      ],
    },
    NOW,
  );

describe('the owner of a pod', () => {
  it('is the Deployment whose hash the ReplicaSet has in its name', () => {
    expect(owned('ReplicaSet', 'web-5d4f', { 'pod-template-hash': '5d4f' })).toEqual({
      kind: 'Deployment',
      name: 'web',
    });
  });

  it.for([
    ['web-5d4f', {}],
    ['web-5d4f', { 'pod-template-hash': '77' }],
    ['-5d4f', { 'pod-template-hash': '5d4f' }],
  ] as const)('is the ReplicaSet %s with %j', ([name, labels]) => {
    expect(owned('ReplicaSet', name, labels)).toEqual({ kind: 'ReplicaSet', name });
  });

  it('is the CronJob that planned the Job for a minute', () => {
    expect(owned('Job', 'nightly-29400000')).toEqual({ kind: 'CronJob', name: 'nightly' });
  });

  it.for(['nightly-20240101', 'nightly-99999999', 'nightly', '29400000'])('is the Job %s', (name) => {
    expect(owned('Job', name)).toEqual({ kind: 'Job', name });
  });

  it('is nobody for a pod that no controller has', () => {
    expect(ownerOf({ ownerReferences: [{ kind: 'ReplicaSet', name: 'web' }] }, NOW)).toBe(undefined);
    expect(ownerOf({ ownerReferences: 7 }, NOW)).toBe(undefined);
    expect(ownerOf(undefined, NOW)).toBe(undefined);
  });
});

/** As a real API server writes it: test/peers. */
const asked = { managedFields: [{ manager: 'kubectl', fieldsV1: { 'f:spec': { 'f:nodeName': {} } } }] };
const notAsked = {
  managedFields: [{ manager: 'kubectl', fieldsV1: { 'f:spec': { 'f:schedulerName': {} } } }],
};

describe('a running pod as somebody asked for it', () => {
  it.for([[notAsked], [{}], [{ managedFields: 7 }], [{ managedFields: [{ fieldsV1: null }] }]])(
    'has no node if a scheduler has chosen it: %j',
    ([metadata]) => {
      const pod = { metadata, spec: { nodeName: 'n1', nodeSelector: { disk: 'ssd' } } };
      expect(asAskedFor(pod as never).spec).toEqual({ nodeSelector: { disk: 'ssd' } });
      expect(pod.spec.nodeName).toBe('n1');
    },
  );

  it('keeps the node that somebody asked for', () => {
    const pod = { metadata: asked, spec: { nodeName: 'n1' } };
    expect(asAskedFor(pod)).toBe(pod);
  });
});

const judged = (parts: Partial<Judged>): Judged => ({
  source: 'pod',
  namespace: 'shop',
  name: 'web',
  owner: undefined,
  user: 'u',
  policies: [],
  reasons: [],
  ...parts,
});
const because = (expectation: string) => [{ field: 'f', expectation, policies: [] }];
const owner = { kind: 'Job', name: 'sum' };

describe('findings', () => {
  it('have one refusal for pods of an owner with the same reasons, and names of the first', () => {
    const findings = new Findings();
    for (let number = 0; number < 500; number += 1) {
      findings.add(judged({ name: `p${number}`, owner, reasons: because(number % 2 === 0 ? 'a' : 'b') }));
    }
    expect(findings.refusals.map(({ count, names }) => ({ count, names }))).toEqual([
      { count: 250, names: ['p0', 'p2', 'p4', 'p6', 'p8'] },
      { count: 250, names: ['p1', 'p3', 'p5', 'p7', 'p9'] },
    ]);
  });

  it('count what they do not list', () => {
    const findings = new Findings(2);
    for (let number = 0; number < 10; number += 1) {
      findings.add(judged({ name: `p${number}`, reasons: because('a') }));
      findings.add(judged({ name: 'p0', owner, reasons: because(`reason ${number}`) }));
    }
    for (let number = 0; number < 30; number += 1) {
      findings.add(judged({ owner, reasons: because(`other ${number}`) }));
    }
    expect(findings.owners).toHaveLength(2);
    expect(findings.counts).toMatchObject({ pods: 50, refusedPods: 50 });
    const listed = findings.refusals.reduce((sum, { count }) => sum + count, 0);
    expect(listed + findings.unlisted).toBe(50);
  });
});
