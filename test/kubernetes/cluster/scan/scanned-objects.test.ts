import { describe, expect, it } from 'vitest';
import { asAskedFor, ownerOf } from '../../../../src/kubernetes/cluster/scan/scanned-objects.ts';

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
