/** The scanned objects: running pods, and templates for pods, each with its owner. */
import { z } from 'zod';
import type { PodRequest } from '../../admission/admission-review.ts';
import { DAEMON_SET_CONTROLLER, MIRROR, NODE, NODES } from '../../admission/pod-admission.ts';
import { POD_KINDS } from '../../admission/pod-kinds.ts';
import type { Pod } from '../../policies/pod.ts';
import type { ApiClient } from '../api/contract.ts';
import { listPages } from '../api/list.ts';

/** API list by kind. */
const PATHS = {
  Pod: '/api/v1',
  Deployment: '/apis/apps/v1',
  StatefulSet: '/apis/apps/v1',
  DaemonSet: '/apis/apps/v1',
  ReplicaSet: '/apis/apps/v1',
  ReplicationController: '/api/v1',
  Job: '/apis/batch/v1',
  CronJob: '/apis/batch/v1',
} as const;

export type ScannedKind = keyof typeof PATHS;

export const TEMPLATE_KINDS = Object.keys(PATHS).filter((kind) => kind !== 'Pod') as Exclude<
  ScannedKind,
  'Pod'
>[];

/** `CronJob` was in `v1beta1` until 1.20. */
export const FORMER_PATHS: Readonly<Partial<Record<ScannedKind, string>>> = {
  CronJob: '/apis/batch/v1beta1',
};

export interface ScannedObject {
  readonly kind: ScannedKind;
  readonly namespace: string;
  readonly name: string;
  readonly metadata: unknown;
  readonly value: unknown;
}

export interface Selection {
  /** One namespace; `undefined` = all. */
  readonly namespace?: string | undefined;
  /** As `kubectl --selector`: for pods their labels, for other objects their own. */
  readonly selector?: string | undefined;
}

/** The API server omits pods that have ended: there may be many. */
const NOT_ENDED = 'status.phase!=Succeeded,status.phase!=Failed';

const item = z.looseObject({
  metadata: z.looseObject({ name: z.string(), namespace: z.string() }),
  status: z
    .looseObject({
      phase: z.string().nullish(),
      conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).nullish(),
    })
    .nullish(),
});

/** A pod has some 10 KB. */
const PAGE = 250;

/** Pages of a kind's objects that have or would have their own pods. @throws ApiError @throws ApiUnreachableError */
export async function* scannedObjects(
  client: ApiClient,
  kind: ScannedKind,
  { namespace, selector }: Selection,
  base: string = PATHS[kind],
): AsyncGenerator<readonly ScannedObject[]> {
  const place = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  const query = {
    ...(kind === 'Pod' && { fieldSelector: NOT_ENDED }),
    ...(selector !== undefined && { labelSelector: selector }),
  };
  const path = `${base}${place}/${POD_KINDS[kind]?.resource}`;
  for await (const { items } of listPages(client, path, { query, page: PAGE })) {
    yield items.flatMap((value) => {
      const { metadata, status } = item.parse(value);
      return hasEnded(kind, status) || (kind !== 'Pod' && controllerOf(metadata) !== undefined)
        ? []
        : [{ kind, namespace: metadata.namespace, name: metadata.name, metadata, value }];
    });
  }
}

/** A finished Job creates no more pods. */
function hasEnded(kind: ScannedKind, status: z.infer<typeof item>['status']): boolean {
  const isDone = status?.conditions?.some(
    ({ type, status: holds }) => (type === 'Complete' || type === 'Failed') && holds === 'True',
  );
  return (
    (kind === 'Pod' && (status?.phase === 'Succeeded' || status?.phase === 'Failed')) ||
    (kind === 'Job' && isDone === true)
  );
}

export interface Owner {
  readonly kind: string;
  readonly name: string;
}

const references = z.looseObject({
  labels: z.record(z.string(), z.string()).nullish(),
  ownerReferences: z
    .array(z.looseObject({ kind: z.string(), name: z.string(), controller: z.boolean().nullish() }))
    .nullish(),
});

/** The label that the Deployment controller adds to the pods of a ReplicaSet, and uses in its name. */
const TEMPLATE_HASH = 'pod-template-hash';

/** The CronJob controller names a Job by its planned minute. Source: `getJobName` of Kubernetes, since 1.21. */
const PLANNED_JOB = /^(.+)-(\d{8})$/;
const YEAR_2020 = 26_297_280;

/** The controller of an object. `undefined` = none. */
function controllerOf(metadata: unknown): Owner | undefined {
  const { data } = references.safeParse(metadata);
  const found = data?.ownerReferences?.find(({ controller }) => controller === true);
  return found === undefined ? undefined : { kind: found.kind, name: found.name };
}

/** The controller, or its owner if names reveal it. `now` as `Date.now()`. */
export function ownerOf(metadata: unknown, now: number): Owner | undefined {
  const controller = controllerOf(metadata);
  if (controller?.kind === 'ReplicaSet') {
    const hash = references.safeParse(metadata).data?.labels?.[TEMPLATE_HASH];
    const end = `-${hash}`;
    return hash !== undefined && controller.name.length > end.length && controller.name.endsWith(end)
      ? { kind: 'Deployment', name: controller.name.slice(0, -end.length) }
      : controller;
  }
  if (controller?.kind === 'Job') {
    const [, name = '', minute] = PLANNED_JOB.exec(controller.name) ?? [];
    return Number(minute) > YEAR_2020 && Number(minute) * 60_000 <= now
      ? { kind: 'CronJob', name }
      : controller;
  }
  return controller;
}

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
