/** Events where people look for the reason: at the controller whose pod was refused, and at a policy that is not valid. */
import { z } from 'zod';
import type { BindingRequest, PodRequest } from '../../admission/admission-review.ts';
import { DAEMON_SET_CONTROLLER } from '../../admission/pod-admission.ts';
import type { LivePolicy } from '../live/contract.ts';
import { POLICY_API_VERSION, POLICY_KIND } from './contract.ts';
import type { Involved } from './event-object.ts';
import type { EventSender } from './event-sender.ts';

export const REFUSED = 'SchedulingPolicyRefused';
export const INVALID = 'SchedulingPolicyInvalid';
/** Kubernetes keeps events about objects without a namespace here. */
const NAMESPACE_OF_CLUSTER = 'default';

const ACCOUNT = 'system:serviceaccount:kube-system:';
/** Where the controllers have no accounts of their own. */
const CONTROLLER_MANAGER = 'system:kube-controller-manager';

/** Kinds whose controllers create pods, and the accounts of these controllers. */
const OWNERS: ReadonlyMap<string, string> = new Map([
  ['apps/v1 ReplicaSet', `${ACCOUNT}replicaset-controller`],
  ['apps/v1 StatefulSet', `${ACCOUNT}statefulset-controller`],
  ['apps/v1 DaemonSet', DAEMON_SET_CONTROLLER],
  ['batch/v1 Job', `${ACCOUNT}job-controller`],
  ['v1 ReplicationController', `${ACCOUNT}replication-controller`],
]);

const owned = z.looseObject({
  ownerReferences: z.array(z.unknown()).max(100),
});
const reference = z.looseObject({
  controller: z.literal(true),
  apiVersion: z.string(),
  kind: z.string(),
  name: z
    .string()
    .max(253)
    .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/),
  uid: z.string().min(1).max(128),
});

/** The part of an admission that is told. */
export interface Refusal {
  readonly allowed: boolean;
  readonly message: string | null;
}

/** Tells the owner of a pod why it is refused. */
export class RefusalEvents {
  readonly #sender: EventSender;

  constructor(sender: EventSender) {
    this.#sender = sender;
  }

  /** Returns at once, and never throws. Ignores what is allowed, dry runs, and pods that people create: they read the answer. */
  refused(request: PodRequest | BindingRequest, { allowed, message }: Refusal): void {
    if (allowed || message === null || request.dryRun || request.kind !== 'pod') {
      return;
    }
    const involved = ownerOf(request);
    if (involved !== undefined) {
      const { namespace } = request;
      this.#sender.send(involved.uid, namespace, REFUSED, () => ({
        ...{ involved, namespace, message },
        ...{ reason: REFUSED, at: new Date() },
      }));
    }
  }
}

/** Tells at a policy that is not valid what is wrong with it. */
export function tellInvalid(sender: EventSender, { name, uid }: LivePolicy, mistake: string): void {
  const involved: Involved = {
    ...{ apiVersion: POLICY_API_VERSION, kind: POLICY_KIND, name, uid },
    namespace: undefined,
  };
  sender.send(uid, NAMESPACE_OF_CLUSTER, INVALID, () => ({
    ...{ involved, namespace: NAMESPACE_OF_CLUSTER, message: mistake },
    ...{ reason: INVALID, at: new Date() },
  }));
}

/**
 * The controller that creates the pod. Anybody who may create pods may name any owner in them, of other people too. So a reference counts
 * only in a request of the controller of that kind, which writes the reference itself.
 */
function ownerOf({ pod, namespace, username }: PodRequest): Involved | undefined {
  // Most refused pods are those of controllers, but the others must cost nothing.
  if (username === undefined || !(username.startsWith(ACCOUNT) || username === CONTROLLER_MANAGER)) {
    return undefined;
  }
  const references = owned.safeParse(pod.metadata).data?.ownerReferences ?? [];
  const owners = references.flatMap((one) => reference.safeParse(one).data ?? []);
  const [owner] = owners;
  if (owner === undefined || owners.length > 1) {
    return undefined;
  }
  const { apiVersion, kind, name, uid } = owner;
  const account = OWNERS.get(`${apiVersion} ${kind}`);
  const isItsController = account !== undefined && (username === account || username === CONTROLLER_MANAGER);
  return isItsController ? { apiVersion, kind, name, uid, namespace } : undefined;
}
