/** Reviews the pods of a cluster: selects the policies, adds defaults, handles audit mode. */
import { isDeepStrictEqual } from 'node:util';
import jsonPatch from 'fast-json-patch';
import { type Account, serviceAccount } from './access.ts';
import type { Admission, BindingRequest, PodRequest } from './admission-review.ts';
import { SCHEDULERS } from './cluster.ts';
import type { PodReview } from './effective-policy.ts';
import { type Pod, serviceAccountName } from './pod.ts';
import { formatReason, type Reason } from './rules/reason.ts';
import type { SchedulingPolicies } from './scheduling-policies.ts';

/** The controller sets the node of each pod of a DaemonSet. Others cannot impersonate it. */
const DAEMON_SET_CONTROLLER = 'system:serviceaccount:kube-system:daemon-set-controller';

/** The kubelet reports a static pod with this annotation. The pod runs whatever a webhook says. */
const MIRROR = 'kubernetes.io/config.mirror';
const NODES = 'system:nodes';
const NODE = 'system:node:';

/** The mutable fields of a pod or a template that decide where the pod runs. */
export const SCHEDULING_FIELDS = [
  'schedulerName',
  'priorityClassName',
  'nodeName',
  'nodeSelector',
  'tolerations',
  'affinity',
  'topologySpreadConstraints',
] as const;

/** These fields of a pod are immutable. */
const ACCOUNT_FIELDS = ['serviceAccountName', 'serviceAccount'] as const;

const AUDIT_ALL = '*';
/** The API server truncates longer ones. Source: Kubernetes docs, "Dynamic Admission Control". */
const MAX_WARNING = 256;
const MAX_WARNINGS = 10;
const MAX_MESSAGE = 2000;
/** Keeps messages within `MAX_MESSAGE`. */
const MAX_REASONS = 50;

/** An admission with its subject and details. */
export interface DecidedAdmission extends Admission {
  readonly account: Account;
  /** Policies in audit mode would have rejected the pod. */
  readonly isAudited: boolean;
  /** The individual reasons. Empty when allowed. */
  readonly reasons: readonly Reason[];
  /** The pod as admitted; absent for a binding. */
  readonly pod?: Pod;
}

const UNTOUCHED = {
  allowed: true,
  message: null,
  patch: [],
  warnings: [],
  isAudited: false,
  reasons: [],
} as const;

export interface PodAdmissionOptions {
  /** Names of the policies in audit mode; `*` = all. Default: none. */
  readonly audit?: readonly string[];
  /** Users that may assign any pod to any node. Default: the scheduler of Kubernetes. */
  readonly schedulers?: readonly string[];
}

/** Reviews the pods of a cluster. */
export class PodAdmission {
  readonly #schedulers: ReadonlySet<string>;
  readonly #policies: SchedulingPolicies;
  /** Policies that are not in audit mode. */
  readonly #enforced: SchedulingPolicies;
  readonly #audited: ReadonlySet<string>;

  constructor(
    policies: SchedulingPolicies,
    { audit = [], schedulers = SCHEDULERS }: PodAdmissionOptions = {},
  ) {
    this.#policies = policies;
    this.#schedulers = new Set(schedulers);
    this.#audited = new Set(audit);
    this.#enforced = audit.length === 0 ? policies : policies.without(this.#audited);
  }

  /** `addDefaults`: whether the response may patch the pod. Otherwise the pod is judged as it is. */
  review(request: PodRequest, { addDefaults }: { readonly addDefaults: boolean }): DecidedAdmission {
    const { pod, current, namespace, isUpdate, username } = request;
    const isTemplate = request.kind === 'template';
    const account = serviceAccount(namespace, serviceAccountName(pod));
    if ((current !== undefined && isSameScheduling(pod, current)) || isMirror(request)) {
      return { account, ...UNTOUCHED, pod };
    }
    // Most fields that a default would set are immutable after creation.
    const canAdd = isTemplate || !isUpdate;
    const options = {
      addDefaults: addDefaults && canAdd,
      isForOneNode: !isTemplate && username === DAEMON_SET_CONTROLLER,
      // A changed template creates new pods.
      current: isTemplate ? undefined : current,
    };
    const judged = current === undefined || isTemplate ? pod : withoutBinding(pod, current);
    const { enforced, tried } = this.#judges(account);
    const review: PodReview = enforced?.review(judged, options) ?? {
      allowed: true,
      pod: judged,
      reasons: [],
    };
    // Adds defaults even where the response cannot: enforced policies would have added them earlier.
    const trial = review.allowed ? tried?.review(judged, { ...options, addDefaults: canAdd }) : undefined;
    const patch = review.allowed && review.pod !== judged ? jsonPatch.compare(judged, review.pod) : [];
    const what = isTemplate ? 'the pod template of the DaemonSet' : 'the pod';
    return {
      ...this.#decided(account, what, review.reasons, trial?.reasons ?? []),
      pod: review.pod,
      patch: isTemplate ? patch.map((one) => ({ ...one, path: `/spec/template${one.path}` })) : patch,
    };
  }

  /** A Binding bypasses the scheduler: schedulers may create one, other users need policies that allow it. */
  reviewBinding({ namespace, username = '', groups, node }: BindingRequest): DecidedAdmission {
    const account = { user: username, groups, namespace };
    if (this.#schedulers.has(username)) {
      return { account, ...UNTOUCHED };
    }
    const { enforced, tried } = this.#judges(account);
    const reasons = enforced?.reviewNode(node) ?? [];
    return this.#decided(account, 'the binding', reasons, tried?.reviewNode(node) ?? []);
  }

  #decided(
    account: Account,
    what: string,
    reasons: readonly Reason[],
    tried: readonly Reason[],
  ): DecidedAdmission {
    const allowed = reasons.length === 0;
    return {
      account,
      allowed,
      message: allowed ? null : messageOf(account, what, reasons),
      patch: [],
      warnings: allowed ? tried.slice(0, MAX_WARNINGS).map((reason) => warning(what, reason)) : [],
      isAudited: allowed && tried.length > 0,
      reasons,
    };
  }

  /** Policies in audit mode change nothing: neither what they would reject nor what they would allow. */
  #judges(account: Account) {
    const all = this.#policies.effectiveFor(account);
    const isTried = (name: string) => this.#audited.has(name);
    if (!isTried(AUDIT_ALL) && !all.policies.some(isTried)) {
      return { enforced: all, tried: undefined };
    }
    const isAllTried = isTried(AUDIT_ALL) || all.policies.every(isTried);
    return { enforced: isAllTried ? undefined : this.#enforced.effectiveFor(account), tried: all };
  }
}

function messageOf({ user }: Account, what: string, reasons: readonly Reason[]): string {
  const shown = reasons.slice(0, MAX_REASONS).map(formatReason).join('; ');
  return cut(`${what} does not fit the scheduling policies of ${user}: ${shown}`, MAX_MESSAGE);
}

/** Whether the kubelet of the pod's own node creates it. Pods of other users are judged, whatever their annotations. */
function isMirror({ kind, pod, username, groups }: PodRequest): boolean {
  const { annotations } = pod.metadata ?? {};
  return (
    kind === 'pod' &&
    Object.hasOwn(annotations ?? {}, MIRROR) &&
    groups.includes(NODES) &&
    username === `${NODE}${pod.spec.nodeName}`
  );
}

function isSameScheduling(pod: Pod, current: Pod): boolean {
  return [...SCHEDULING_FIELDS, ...ACCOUNT_FIELDS].every((field) =>
    isDeepStrictEqual(pod.spec[field] ?? null, current.spec[field] ?? null),
  );
}

/** The node that a scheduler has assigned was not requested by the user. */
function withoutBinding(pod: Pod, current: Pod): Pod {
  return pod.spec.nodeName === current.spec.nodeName
    ? { ...pod, spec: { ...pod.spec, nodeName: undefined } }
    : pod;
}

function warning(what: string, reason: Reason): string {
  const shown = what.replace(/^the/, 'this');
  return cut(`a scheduling policy in audit mode would reject ${shown}: ${formatReason(reason)}`, MAX_WARNING);
}

/** The first half of a surrogate pair. */
const HALF_A_LETTER = /[\ud800-\udbff]$/;

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).replace(HALF_A_LETTER, '')}…` : text;
}
