/**
 * Rules for a pod that is assigned to a node by name, in its `nodeName` or by a Binding: it bypasses the scheduler
 * and NoSchedule taints. The kubelet still checks its own node selector and required affinity.
 */
import type { Reason } from './reason.ts';
import type { Rules } from './rules.ts';

const BY_SCHEDULERS = 'expected nothing, because a pod that names its node bypasses every scheduler';
const BY_TAINTS =
  'expected nothing, because a pod that names its node bypasses taints, and it may not tolerate all of them';

/**
 * Reasons why the pod may not name this node: it needs permission for all schedulers, for the node, and to tolerate
 * every NoSchedule taint.
 */
export function nodeReasons(name: string, { names, affinities, tolerations }: Rules): Reason[] {
  const { schedulerName } = names;
  const node = affinities.judgeNode(name);
  return [
    ...(schedulerName.allowsAll ? [] : [because(BY_SCHEDULERS, schedulerName.policies)]),
    ...(node === undefined ? [] : [node]),
    ...(tolerations.allowsAllNoSchedule ? [] : [because(BY_TAINTS, tolerations.policies)]),
  ];
}

function because(expectation: string, policies: readonly string[]): Reason {
  return { field: 'nodeName', expectation, policies };
}
