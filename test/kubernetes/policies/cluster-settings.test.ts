import { describe, expect, it } from 'vitest';
import {
  Cluster,
  DAEMON_SET_TOLERATIONS,
  SYSTEM_TOLERATIONS,
} from '../../../src/kubernetes/policies/cluster-settings.ts';
import { EffectivePolicy } from '../../../src/kubernetes/policies/effective-policy.ts';
import { pod, review } from '../../support/scheduling-policies.ts';

const key = (name: string) => `node.kubernetes.io/${name}`;
const notReady = { key: key('not-ready'), operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 };

const OF_THE_API_SERVER = [notReady, { ...notReady, key: key('unreachable') }];

const OF_DAEMON_SETS = [
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
  it('are those that the API server adds to every pod, and are not judged', () => {
    expect(OF_THE_API_SERVER).toHaveLength(SYSTEM_TOLERATIONS.length);
    expect(review([], pod({ tolerations: OF_THE_API_SERVER })).reasons).toEqual([]);
  });

  it('of DaemonSets are exempt for their controller only', () => {
    expect(OF_DAEMON_SETS).toHaveLength(DAEMON_SET_TOLERATIONS.length);
    for (const toleration of OF_DAEMON_SETS) {
      const asked = pod({ tolerations: [toleration] });
      expect(review([], asked, 'deep', { isForOneNode: true }).reasons).toEqual([]);
      expect(review([], asked).reasons.map(({ field }) => field)).toEqual(['tolerations[0]']);
    }
  });

  it('of DaemonSets stay exempt in a pod that has them, whoever updates it', () => {
    const [kept, added] = OF_DAEMON_SETS;
    const judge = (tolerations: unknown[]) =>
      review([], pod({ tolerations }), 'deep', { current: pod({ tolerations: [kept] }) }).reasons.map(
        ({ field }) => field,
      );
    expect(judge([kept])).toEqual([]);
    expect(judge([kept, added])).toEqual(['tolerations[1]']);
  });

  it('of a pod before an update are read once, however many the update adds', () => {
    let read = 0;
    const before = OF_DAEMON_SETS.map((toleration) => ({
      ...toleration,
      get key() {
        read += 1;
        return toleration.key;
      },
    }));
    const after = pod({ tolerations: Array(10).fill(OF_DAEMON_SETS).flat() });
    const { reasons } = review([], after, 'deep', { current: pod({ tolerations: before }) });
    expect(reasons).toEqual([]);
    expect(read).toBeLessThan(before.length * DAEMON_SET_TOLERATIONS.length);
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
  ])('match exactly: %j is judged', (toleration) => {
    expect(review([], pod({ tolerations: [toleration] })).allowed).toBe(false);
  });

  it('can be configured', () => {
    const written = ['gpu:NoSchedule', 'team=red:NoExecute:60', 'empty=:NoSchedule'];
    const effective = new EffectivePolicy([], 'deep', new Cluster({ systemTolerations: written }));
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
    const daemonSets = new EffectivePolicy([], 'deep', new Cluster({ daemonSetTolerations: written }));
    const tolerations = [{ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' }];
    for (const isForOneNode of [true, false]) {
      expect(daemonSets.review(pod({ tolerations }), { addDefaults: true, isForOneNode }).allowed).toBe(
        isForOneNode,
      );
    }
  });
});
