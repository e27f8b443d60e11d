/** Pods that a cluster has stored, as they were asked for. */
import { z } from 'zod';
import type { PodRequest } from '../../admission/admission-review.ts';
import { DAEMON_SET_CONTROLLER, MIRROR, NODE, NODES } from '../../admission/pod-admission.ts';
import type { Pod } from '../../policies/pod.ts';
import { controllerOf } from './scanned-objects.ts';

/** The API server creates no object with one. */
const stored = z.looseObject({ resourceVersion: z.string().min(1) });

export function isStored({ metadata: written }: Pod): boolean {
  return stored.safeParse(written).success;
}

/** Who has created it, if the review depends on it. `undefined` = not known. */
export function creatorOf(pod: Pod): Pick<PodRequest, 'username' | 'groups'> {
  if (isMirror(pod)) {
    return { username: `${NODE}${pod.spec.nodeName}`, groups: [NODES] };
  }
  const isOfDaemonSet = controllerOf(pod.metadata)?.kind === 'DaemonSet';
  return { username: isOfDaemonSet ? DAEMON_SET_CONTROLLER : undefined, groups: [] };
}

const metadata = z.looseObject({
  annotations: z.record(z.string(), z.string()).nullish(),
  managedFields: z.array(z.looseObject({ fieldsV1: z.unknown() })).nullish(),
});

/** Whether the kubelet reports a static pod by it: it runs whatever webhooks answer. */
export function isMirror(pod: Pod): boolean {
  const { data } = metadata.safeParse(pod.metadata);
  const controller = controllerOf(pod.metadata);
  return (
    Object.hasOwn(data?.annotations ?? {}, MIRROR) &&
    controller?.kind === 'Node' &&
    controller.name === pod.spec.nodeName
  );
}

/**
 * The pod without a node that a scheduler has chosen. A Binding leaves no trace in `managedFields`, but the
 * pod's creation does: so a requested node stays. Tried on 1.20 (test/peers).
 */
export function asAskedFor(pod: Pod): Pod {
  if (!pod.spec.nodeName || isMirror(pod) || hasAskedForNode(pod)) {
    return pod;
  }
  const { nodeName: _, ...spec } = pod.spec;
  return { ...pod, spec };
}

const ownsNodeName = z.looseObject({ 'f:spec': z.looseObject({ 'f:nodeName': z.unknown() }) });

function hasAskedForNode({ metadata: written }: Pod): boolean {
  const fields = metadata.safeParse(written).data?.managedFields ?? [];
  return fields.some(({ fieldsV1 }) => {
    const { data } = ownsNodeName.safeParse(fieldsV1);
    return data !== undefined && Object.hasOwn(data['f:spec'], 'f:nodeName');
  });
}
