/**
 * A pod that is put on a node by name, in its `nodeName` or by a Binding: no scheduler looks at it, and taints with NoSchedule
 * don't keep it away. The kubelet still holds it against its own node selector and required affinity.
 */
import type { Reason } from './reason.ts';
import type { Rules } from './rules.ts';

const BY_SCHEDULERS = 'expected nothing, since a pod that names its node passes by every scheduler';
const BY_TAINTS =
  'expected nothing, since a pod that names its node passes by taints, which it may not all tolerate';

/** Why a pod can't be on this node by name: it needs all schedulers, the node, and a toleration of every NoSchedule taint. */
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
