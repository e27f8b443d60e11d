/**
 * Simulates what the API server changes in a pod before a webhook sees it. Source: its defaults and admission
 * plugins; tried on 1.20 (test/peers).
 */
import { DEFAULT_SCHEDULER } from '../policies/cluster-settings.ts';
import type { Pod, Toleration } from '../policies/pod.ts';

const SECONDS = 300;

/**
 * Adds the default scheduler, the default priority class of the cluster, and the five-minute tolerations for
 * unreachable nodes. A template only gets the scheduler.
 */
export function asAdmitted(
  pod: Pod,
  { defaultPriorityClass, isTemplate }: { defaultPriorityClass?: string | undefined; isTemplate: boolean },
): Pod {
  const { spec } = pod;
  const schedulerName = spec.schedulerName || DEFAULT_SCHEDULER;
  if (isTemplate) {
    return { ...pod, spec: { ...spec, schedulerName } };
  }
  const priorityClassName = spec.priorityClassName || defaultPriorityClass;
  const tolerations = [...(spec.tolerations ?? []), ...missing(spec.tolerations ?? [])];
  return {
    ...pod,
    spec: { ...spec, schedulerName, tolerations, ...(priorityClassName && { priorityClassName }) },
  };
}

function missing(there: readonly Toleration[]): Toleration[] {
  return ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']
    .filter(
      (key) =>
        !there.some((one) => (!one.key || one.key === key) && (!one.effect || one.effect === 'NoExecute')),
    )
    .map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: SECONDS }));
}

/** Copies what policies added into the pod as the user wrote it, without what the API server filled in. */
export function withAdditions(written: Pod, admitted: Pod, reviewed: Pod): Pod {
  if (reviewed === admitted) {
    return written;
  }
  const spec: Record<string, unknown> = { ...written.spec };
  for (const [field, value] of Object.entries(reviewed.spec)) {
    if (value !== admitted.spec[field]) {
      spec[field] = field === 'tolerations' ? tolerations(written, admitted, reviewed) : value;
    }
  }
  for (const field of Object.keys(written.spec).filter((one) => !(one in reviewed.spec))) {
    delete spec[field];
  }
  return { ...written, spec };
}

function tolerations(written: Pod, admitted: Pod, { spec }: Pod): Toleration[] {
  const before = admitted.spec.tolerations?.length ?? 0;
  return [...(written.spec.tolerations ?? []), ...(spec.tolerations ?? []).slice(before)];
}
