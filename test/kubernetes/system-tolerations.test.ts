import { describe, expect, it } from 'vitest';
import { EffectivePolicy } from '../../src/kubernetes/effective-policy.ts';
import { SYSTEM_TOLERATIONS, SystemTolerations } from '../../src/kubernetes/system-tolerations.ts';
import { pod, policy, review } from '../support/scheduling-policies.ts';

const key = (name: string) => `node.kubernetes.io/${name}`;
const notReady = { key: key('not-ready'), operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 };

const OF_KUBERNETES = [
  notReady,
  { ...notReady, key: key('unreachable') },
  { key: key('not-ready'), operator: 'Exists', effect: 'NoExecute' },
  { key: key('unreachable'), operator: 'Exists', effect: 'NoExecute', tolerationSeconds: null },
  ...['disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable', 'network-unavailable'].map(
    (name) => ({
      key: key(name),
      operator: 'Exists',
      effect: 'NoSchedule',
    }),
  ),
];

describe('tolerations of the system', () => {
  it('are what the API server and the DaemonSet controller add, and are not judged', () => {
    expect(OF_KUBERNETES).toHaveLength(SYSTEM_TOLERATIONS.length);
    for (const toleration of OF_KUBERNETES) {
      expect(review([], pod({ tolerations: [toleration] })).reasons).toEqual([]);
    }
  });

  it.each([
    { ...notReady, tolerationSeconds: 301 },
    { ...notReady, tolerationSeconds: 0 },
    { ...notReady, effect: 'NoSchedule' },
    { ...notReady, effect: undefined },
    { ...notReady, operator: 'Equal' },
    { ...notReady, operator: undefined },
    { ...notReady, operator: undefined, value: '' },
    { ...notReady, operator: 'Lt' },
    { ...notReady, key: 'node.kubernetes.io/other' },
    { ...notReady, key: undefined },
    { key: key('unschedulable'), operator: 'Exists', effect: 'NoExecute' },
    { key: key('unschedulable'), operator: 'Exists', effect: 'NoSchedule', tolerationSeconds: 300 },
    { operator: 'Exists' },
  ])('are exactly those: %j is asked for', (toleration) => {
    expect(review([], pod({ tolerations: [toleration] })).allowed).toBe(false);
  });

  it('are others where others are configured', () => {
    const written = ['gpu:NoSchedule', 'team=red:NoExecute:60', 'empty=:NoSchedule'];
    const effective = new EffectivePolicy([], 'deep', new SystemTolerations(written));
    const isAllowed = (toleration: object) =>
      effective.review(pod({ tolerations: [toleration] }), { addDefaults: true }).allowed;
    expect(isAllowed({ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' })).toBe(true);
    expect(
      isAllowed({ key: 'team', operator: 'Equal', value: 'red', effect: 'NoExecute', tolerationSeconds: 60 }),
    ).toBe(true);
    expect(isAllowed({ key: 'team', value: 'red', effect: 'NoExecute', tolerationSeconds: 60 })).toBe(true);
    expect(isAllowed({ key: 'empty', effect: 'NoSchedule' })).toBe(true);
    expect(isAllowed({ key: 'gpu', effect: 'NoSchedule' })).toBe(false);
    expect(isAllowed({ key: 'team', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 })).toBe(
      false,
    );
    expect(isAllowed(notReady)).toBe(false);
  });

  it('leave those beside them to be judged', () => {
    const tolerations = [notReady, { key: 'gpu', operator: 'Exists' }, notReady];
    expect(review([], pod({ tolerations })).reasons.map(({ field }) => field)).toEqual(['tolerations[1]']);
    expect(
      review([policy('a', 'allowed: {tolerations: [{keys: [gpu]}]}')], pod({ tolerations })).allowed,
    ).toBe(true);
  });
});
