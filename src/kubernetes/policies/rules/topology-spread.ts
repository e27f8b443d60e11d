/**
 * Topology spread constraints keep pods apart, as anti-affinities do. If they are refused, they need the same
 * permission.
 */
import type { Pod } from '../pod.ts';
import type { AffinityRules } from './affinity-rules.ts';
import type { Reason } from './reason.ts';

const EXPECTATION =
  'expected nothing, because it keeps pods apart, and not all podAntiAffinities are allowed';

export function topologySpreadReasons(
  constraints: NonNullable<Pod['spec']['topologySpreadConstraints']>,
  affinities: AffinityRules,
): Reason[] {
  return constraints.flatMap(({ whenUnsatisfiable }, index) => {
    const time =
      whenUnsatisfiable === 'ScheduleAnyway'
        ? 'preferredDuringSchedulingIgnoredDuringExecution'
        : 'requiredDuringSchedulingIgnoredDuringExecution';
    const { all, policies } = affinities.at('podAntiAffinity', time);
    return all ? [] : [{ field: `topologySpreadConstraints[${index}]`, expectation: EXPECTATION, policies }];
  });
}
