import { describe, expect, it } from 'vitest';
import { Cluster } from '../../../../src/kubernetes/policies/cluster-settings.ts';
import { EffectivePolicy } from '../../../../src/kubernetes/policies/effective-policy.ts';
import { pod, policy, reasonsOf } from '../../../support/scheduling-policies.ts';

const HARD = '{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}';
const SOFT = '{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}';
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

const judged = (constraints: string, spec: string, mode: 'allow' | 'refuse' = 'refuse') =>
  reasonsOf(
    new EffectivePolicy([policy('a', spec)], 'deep', new Cluster({ topologySpreadConstraints: mode })).review(
      pod(`topologySpreadConstraints: ${constraints}`),
      { addDefaults: true },
    ),
  );

describe('topologySpreadConstraints', () => {
  it('are allowed, unless the option refuses them', () => {
    expect(judged(`[${HARD}]`, '{}', 'allow')).toEqual([]);
    expect(judged(`[${SOFT}, ${HARD}]`, '{}')).toEqual([
      'topologySpreadConstraints[0]: expected nothing, because it keeps pods apart, and not all podAntiAffinities are allowed (no scheduling policy of the account mentions it)',
      'topologySpreadConstraints[1]: expected nothing, because it keeps pods apart, and not all podAntiAffinities are allowed (no scheduling policy of the account mentions it)',
    ]);
    for (const nothing of ['[]', 'null']) {
      expect(judged(nothing, '{}')).toEqual([]);
    }
  });

  it.each([
    ['affinities: {}', 0, 0],
    ['affinities: {podAntiAffinities: {}}', 0, 0],
    [`affinities: {podAntiAffinities: {${REQUIRED}: {}}}`, 0, 1],
    [`affinities: {podAntiAffinities: {${PREFERRED}: {}}}`, 1, 0],
    ['affinities: {podAffinities: {}, nodeAffinities: {}}', 1, 1],
  ])('need the same permission as anti-affinities: %s', (allowed, hard, soft) => {
    expect(judged(`[${HARD}]`, `allowed: {${allowed}}`)).toHaveLength(hard);
    expect(judged(`[${SOFT}]`, `allowed: {${allowed}}`)).toHaveLength(soft);
  });

  it('of an unknown kind count as the strict one', () => {
    const unknown = HARD.replace('DoNotSchedule', 'Perhaps');
    expect(
      judged(`[${unknown}]`, `allowed: {affinities: {podAntiAffinities: {${PREFERRED}: {}}}}`),
    ).toHaveLength(1);
    expect(judged('[{}]', `allowed: {affinities: {podAntiAffinities: {${PREFERRED}: {}}}}`)).toHaveLength(1);
  });
});
