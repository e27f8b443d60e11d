/**
 * The kinds of reviewed objects: pods and objects that create pods, with the place of the pod or pod template
 * in each.
 */
import type { Path } from '../../base/yaml/tree.ts';
import { type ClusterOptions, DEFAULT_SCHEDULER, SYSTEM_TOLERATIONS } from '../policies/cluster-settings.ts';
import type { Pod, Toleration } from '../policies/pod.ts';
import { API_GROUPS } from '../policies/policy.ts';

interface PodKind {
  /** Empty if the object is the pod itself. */
  readonly path: Path;
  readonly resource: string;
  /** API groups that have, or had, the resource. */
  readonly groups: readonly string[];
}

const CORE = [''];
/** `extensions`: until 1.16. */
const APPS = ['apps', 'extensions'];
const BATCH = ['batch'];
const TEMPLATE = ['spec', 'template'];

export const POD_KINDS: Readonly<Record<string, PodKind>> = {
  Pod: { path: [], resource: 'pods', groups: CORE },
  PodTemplate: { path: ['template'], resource: 'podtemplates', groups: CORE },
  Deployment: { path: TEMPLATE, resource: 'deployments', groups: APPS },
  ReplicaSet: { path: TEMPLATE, resource: 'replicasets', groups: APPS },
  ReplicationController: { path: TEMPLATE, resource: 'replicationcontrollers', groups: CORE },
  StatefulSet: { path: TEMPLATE, resource: 'statefulsets', groups: ['apps'] },
  DaemonSet: { path: TEMPLATE, resource: 'daemonsets', groups: APPS },
  Job: { path: TEMPLATE, resource: 'jobs', groups: BATCH },
  CronJob: { path: ['spec', 'jobTemplate', 'spec', 'template'], resource: 'cronjobs', groups: BATCH },
};

/** Reviewed as they are: a pod, a template that creates none, and a kind whose pods do not show its affinity. */
const NO_WORKLOADS = ['Pod', 'PodTemplate', 'DaemonSet'];

/** The kinds whose pods are like their templates. */
export const WORKLOAD_KINDS: readonly string[] = Object.keys(POD_KINDS).filter(
  (kind) => !NO_WORKLOADS.includes(kind),
);

/** The kind of workload of a resource, such as `Deployment`; `undefined` = not a workload. */
export function workloadKindOf(group: string, resource: string): string | undefined {
  return WORKLOAD_KINDS.find((kind) => {
    const known = POD_KINDS[kind];
    return known?.resource === resource && known.groups.includes(group);
  });
}

/** The API version of every review. Source: Kubernetes API, admission.k8s.io/v1. */
export const API_VERSION = 'admission.k8s.io/v1';
export const KIND = 'AdmissionReview';

export type ReviewedKind = 'pod' | 'binding' | 'template' | 'workload' | 'policy';

/** Subresources whose objects are pods with other containers or resources: rules cover these, policies do not. */
const CONTAINER_CHANGES: readonly (string | null | undefined)[] = ['ephemeralcontainers', 'resize'];

/** Whether only rules apply to a request: it cannot move the pod. */
export function isForRulesAlone(
  { group, resource }: { readonly group: string; readonly resource: string },
  subResource: string | null | undefined,
): boolean {
  return group === '' && resource === 'pods' && CONTAINER_CHANGES.includes(subResource);
}

/** An object's kind for the review; `undefined` = it needs no review. */
export function reviewedKind(
  { group, resource: name }: { readonly group: string; readonly resource: string },
  subResource: string | null | undefined,
): ReviewedKind | undefined {
  if (group === '' && name === 'pods') {
    const isPod = !subResource || CONTAINER_CHANGES.includes(subResource);
    return isPod ? 'pod' : subResource === 'binding' ? 'binding' : undefined;
  }
  if (subResource) {
    return undefined;
  }
  if (group === '' && name === 'bindings') {
    return 'binding';
  }
  if (name === 'daemonsets' && (group === 'apps' || group === 'extensions')) {
    return 'template';
  }
  if (workloadKindOf(group, name) !== undefined) {
    return 'workload';
  }
  return name === 'schedulingpolicies' && API_GROUPS.some((one) => one === group) ? 'policy' : undefined;
}

const SECONDS = 300;

/**
 * Adds the default scheduler, the default priority class of the cluster, and the tolerations for unreachable
 * nodes, for as long as `systemTolerations` has them. A template only gets the scheduler.
 */
export function asAdmitted(
  pod: Pod,
  isTemplate: boolean,
  { defaultPriorityClass, systemTolerations = SYSTEM_TOLERATIONS }: ClusterOptions,
): Pod {
  const { spec } = pod;
  const schedulerName = spec.schedulerName || DEFAULT_SCHEDULER;
  if (isTemplate) {
    return { ...pod, spec: { ...spec, schedulerName } };
  }
  const priorityClassName = spec.priorityClassName || defaultPriorityClass;
  const there = spec.tolerations ?? [];
  const tolerations = [...there, ...missing(there, systemTolerations)];
  return {
    ...pod,
    spec: { ...spec, schedulerName, tolerations, ...(priorityClassName && { priorityClassName }) },
  };
}

function missing(there: readonly Toleration[], system: readonly string[]): Toleration[] {
  return ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']
    .filter(
      (key) =>
        !there.some((one) => (!one.key || one.key === key) && (!one.effect || one.effect === 'NoExecute')),
    )
    .map((key) => {
      const start = `${key}:NoExecute:`;
      const seconds = system.find((one) => one.startsWith(start))?.slice(start.length) ?? SECONDS;
      return { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: Number(seconds) };
    });
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
  for (const field of Object.keys(admitted.spec).filter((one) => !(one in reviewed.spec))) {
    delete spec[field];
  }
  return { ...written, spec };
}

function tolerations(written: Pod, admitted: Pod, { spec }: Pod): Toleration[] {
  const before = admitted.spec.tolerations?.length ?? 0;
  return [...(written.spec.tolerations ?? []), ...(spec.tolerations ?? []).slice(before)];
}
