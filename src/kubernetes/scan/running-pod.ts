/** A running pod as somebody asked for it: without what Kubernetes itself has put on it since. */
import { z } from 'zod';
import type { Pod } from '../pod.ts';
import { controllerOf } from './owner.ts';

const MIRROR = 'kubernetes.io/config.mirror';

const metadata = z.looseObject({
  annotations: z.record(z.string(), z.string()).nullish(),
  managedFields: z.array(z.looseObject({ fieldsV1: z.unknown() })).nullish(),
});

/** Whether the kubelet shows a static pod by it: the pod runs whatever webhooks say. */
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
 * The pod without the node that a scheduler has chosen. A Binding leaves no trace in `managedFields`, the request that created the
 * pod does: so a node that somebody asked for stays. Tried on 1.20 (test/peers).
 */
export function asAskedFor(pod: Pod): Pod {
  if (!pod.spec.nodeName || hasAskedForNode(pod)) {
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
