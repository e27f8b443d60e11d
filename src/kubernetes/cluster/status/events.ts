/** Events where users look for reasons: at the controller of a refused pod, and at an invalid policy. */
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { Logger } from '../../../base/logger.ts';
import type { BindingRequest, PodRequest } from '../../admission/admission-review.ts';
import { DAEMON_SET_CONTROLLER } from '../../admission/pod-admission.ts';
import { type ApiClient, ApiError } from '../api/contract.ts';
import { boundedCall, CLOCK, type Clock } from '../api/timing.ts';
import type { LivePolicy } from '../live/contract.ts';
import {
  COMPONENT,
  POLICY_API_VERSION,
  POLICY_KIND,
  type StatusObserver,
  seconds,
  shownText,
} from './conditions.ts';

const REFUSED = 'SchedulingPolicyRefused';
const INVALID = 'SchedulingPolicyInvalid';
/** Kubernetes keeps events about objects without a namespace here. */
const NAMESPACE_OF_CLUSTER = 'default';

const ACCOUNT = 'system:serviceaccount:kube-system:';
/** If the controllers have no accounts of their own. */
const CONTROLLER_MANAGER = 'system:kube-controller-manager';

/** Kinds whose controllers create pods, and these controllers' accounts. */
const OWNERS: ReadonlyMap<string, string> = new Map([
  ['apps/v1 ReplicaSet', `${ACCOUNT}replicaset-controller`],
  ['apps/v1 StatefulSet', `${ACCOUNT}statefulset-controller`],
  ['apps/v1 DaemonSet', DAEMON_SET_CONTROLLER],
  ['batch/v1 Job', `${ACCOUNT}job-controller`],
  ['v1 ReplicationController', `${ACCOUNT}replication-controller`],
]);

const owned = z.looseObject({ ownerReferences: z.array(z.unknown()).max(100) });
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

export interface Refusal {
  readonly allowed: boolean;
  readonly message: string | null;
}

/**
 * The controller that creates the pod. Any user who may create pods can name any owner in them, even of other
 * users. So a reference counts only in a request of that kind's controller, which writes the reference
 * itself.
 */
function ownerOf({ pod, namespace, username }: PodRequest): Involved | undefined {
  // Most refused pods come from controllers, but the others must cost nothing.
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

/** Queued events. Each is at most a few kB. */
const MOST_WAITING = 256;
/** So that one namespace does not fill the queue. */
const MOST_OF_ONE_NAMESPACE = 64;
/** Between two events, in milliseconds. */
const PAUSE_MS = 100;
/** Objects whose last event is remembered. */
const MOST_REMEMBERED = 4096;
/** Between two log lines about failures, in milliseconds. */
const QUIET_MS = 600_000;

interface EventSenderOptions {
  readonly client: ApiClient;
  readonly logger: Logger;
  readonly observer: StatusObserver;
  readonly clock?: Clock;
}

export class EventSender {
  readonly #options: Required<EventSenderOptions>;
  readonly #closing = new AbortController();
  readonly #waiting: EventDraft[] = [];
  /** By object and reason: time when its last event was queued. */
  readonly #last = new LRUCache<string, number>({ max: MOST_REMEMBERED });
  #loggedAt = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;

  constructor(options: EventSenderOptions) {
    this.#options = { clock: CLOCK, ...options };
  }

  /**
   * Reports a refusal at the pod's owner. Ignores allowed pods, dry runs, and pods that users create: they
   * get the answer.
   */
  refused(request: PodRequest | BindingRequest, { allowed, message }: Refusal): void {
    if (allowed || message === null || request.dryRun || request.kind !== 'pod') {
      return;
    }
    const involved = ownerOf(request);
    if (involved !== undefined) {
      this.#send({ involved, namespace: request.namespace, reason: REFUSED, message });
    }
  }

  invalid({ name, uid }: LivePolicy, message: string): void {
    const policy = { apiVersion: POLICY_API_VERSION, kind: POLICY_KIND, name, uid };
    const involved = { ...policy, namespace: undefined };
    this.#send({ involved, namespace: NAMESPACE_OF_CLUSTER, reason: INVALID, message });
  }

  /** Returns at once, and never throws. At most one event a minute per object and reason. */
  #send(draft: Omit<EventDraft, 'at'>): void {
    const { involved, namespace, reason } = draft;
    const now = this.#options.clock.now();
    const key = `${involved.uid} ${reason}`;
    const last = this.#last.get(key);
    if (this.#closing.signal.aborted || (last !== undefined && now - last < MINUTE_MS)) {
      return;
    }
    const ofNamespace = this.#waiting.filter((one) => one.namespace === namespace);
    if (this.#waiting.length >= MOST_WAITING || ofNamespace.length >= MOST_OF_ONE_NAMESPACE) {
      this.#options.observer.event('dropped');
      return;
    }
    this.#last.set(key, now);
    this.#waiting.push({ ...draft, at: new Date() });
    this.#running ??= this.#run();
  }

  /** Drops queued events. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    for (const _ of this.#waiting.splice(0)) {
      this.#options.observer.event('dropped');
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    for (let draft = this.#waiting.shift(); draft !== undefined; draft = this.#waiting.shift()) {
      await this.#write(draft);
      await this.#options.clock.sleep(PAUSE_MS, signal);
      if (signal.aborted) {
        break;
      }
    }
    this.#running = undefined;
  }

  async #write(draft: EventDraft): Promise<void> {
    const path = `/api/v1/namespaces/${encodeURIComponent(draft.namespace)}/events`;
    try {
      const body = eventObject(draft);
      await boundedCall(this.#options.client, { method: 'POST', path, body }, this.#closing.signal);
      this.#options.observer.event('sent');
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        this.#options.observer.event('repeated');
      } else {
        this.#options.observer.event('failed');
        this.#logFailure(error);
      }
    }
  }

  #logFailure(error: unknown): void {
    if (this.#closing.signal.aborted || this.#options.clock.now() - this.#loggedAt < QUIET_MS) {
      return;
    }
    this.#loggedAt = this.#options.clock.now();
    this.#options.logger.warn(
      { error: String(error) },
      'events about refused pods and invalid policies are missing',
    );
  }
}

const MINUTE_MS = 60_000;
/** Names have at most 253 characters, of which a dot and the hash take 17. */
const MOST_OF_NAME = 230;

interface Involved {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  /** `undefined` = none. */
  readonly namespace: string | undefined;
}

interface EventDraft {
  readonly involved: Involved;
  /** Of the event: the object's, or `default` for an object without one. */
  readonly namespace: string;
  readonly reason: string;
  readonly message: string;
  readonly at: Date;
}

/**
 * core/v1, not events.k8s.io/v1: every kubectl shows its time. All replicas use the same name within a minute
 * of the clock, so that the API server accepts one of them.
 */
export function eventObject({ involved, namespace, reason, message, at }: EventDraft): object {
  const minute = Math.floor(at.getTime() / MINUTE_MS);
  const hash = createHash('sha256').update(`${involved.uid} ${reason} ${minute}`).digest('hex').slice(0, 16);
  const time = seconds(at);
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${nameStart(involved.name)}.${hash}`, namespace },
    involvedObject: involved,
    type: 'Warning',
    reason,
    message: shownText(message),
    count: 1,
    firstTimestamp: time,
    lastTimestamp: time,
    source: { component: COMPONENT },
    reportingComponent: COMPONENT,
    reportingInstance: hostname(),
  };
}

function nameStart(name: string): string {
  return name.slice(0, MOST_OF_NAME).replace(/[.-]+$/, '');
}
