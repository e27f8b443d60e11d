/** Pods at the door of a cluster: whose policies judge which, what is added to them, and what is only tried. */
import { isDeepStrictEqual } from 'node:util';
import jsonPatch from 'fast-json-patch';
import { type Account, serviceAccount } from './access.ts';
import type { Admission, BindingRequest, PodRequest } from './admission-review.ts';
import type { PodReview } from './effective-policy.ts';
import { type Pod, serviceAccountName } from './pod.ts';
import { formatReason, type Reason } from './rules/reason.ts';
import { SCHEDULERS } from './schedulers.ts';
import type { SchedulingPolicies } from './scheduling-policies.ts';

/** The controller names a node for each pod of a DaemonSet; whoever is not it can't say to be it. */
const DAEMON_SET_CONTROLLER = 'system:serviceaccount:kube-system:daemon-set-controller';

/** The kubelet shows a pod that it runs by itself with this annotation; nobody can keep it from running. */
const MIRROR = 'kubernetes.io/config.mirror';
const NODES = 'system:nodes';
const NODE = 'system:node:';

/** What a pod, or the template of one, can be changed in that decides where it runs. */
export const SCHEDULING_FIELDS = [
  'schedulerName',
  'priorityClassName',
  'nodeName',
  'nodeSelector',
  'tolerations',
  'affinity',
  'topologySpreadConstraints',
] as const;

/** In a pod it can't be changed. */
const ACCOUNT_FIELDS = ['serviceAccountName', 'serviceAccount'] as const;

const AUDIT_ALL = '*';
/** The API server cuts longer ones. Source: Kubernetes docs, "Dynamic Admission Control". */
const MAX_WARNING = 256;
const MAX_WARNINGS = 10;
const MAX_MESSAGE = 2000;
/** More would not fit into a message. */
const MAX_REASONS = 50;

/** An admission, and whom and what it is about. */
export interface DecidedAdmission extends Admission {
  readonly account: Account;
  /** Policies that are only tried would have refused the pod. */
  readonly isAudited: boolean;
  /** Why not, one by one. Empty when allowed. */
  readonly reasons: readonly Reason[];
  /** The pod as it is let through; of a binding there is none. */
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
  /** The names of the policies that are tried; `*` = all. Default: none. */
  readonly audit?: readonly string[];
  /** The users that may put any pod on any node. Default: the scheduler of Kubernetes. */
  readonly schedulers?: readonly string[];
}

/** Reviews the pods of a cluster. */
export class PodAdmission {
  readonly #schedulers: ReadonlySet<string>;
  readonly #policies: SchedulingPolicies;
  /** Those that are not tried. */
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

  /** `addDefaults`: whether the pod may be patched; where not, it is judged as it stands. */
  review(request: PodRequest, { addDefaults }: { readonly addDefaults: boolean }): DecidedAdmission {
    const { pod, current, namespace, isUpdate, username } = request;
    const isTemplate = request.kind === 'template';
    const account = serviceAccount(namespace, serviceAccountName(pod));
    if ((current !== undefined && isSameScheduling(pod, current)) || isMirror(request)) {
      return { account, ...UNTOUCHED, pod };
    }
    // Most of what a default would set in a pod can't be changed any more.
    const canAdd = isTemplate || !isUpdate;
    const options = {
      addDefaults: addDefaults && canAdd,
      isForOneNode: !isTemplate && username === DAEMON_SET_CONTROLLER,
      // The pods of a template are made anew.
      current: isTemplate ? undefined : current,
    };
    const judged = current === undefined || isTemplate ? pod : withoutBinding(pod, current);
    const { enforced, tried } = this.#judges(account);
    const review: PodReview = enforced?.review(judged, options) ?? {
      allowed: true,
      pod: judged,
      reasons: [],
    };
    // Also where nothing may be added now: if they were enforced, their defaults would have been added before.
    const trial = review.allowed ? tried?.review(judged, { ...options, addDefaults: canAdd }) : undefined;
    const patch = review.allowed && review.pod !== judged ? jsonPatch.compare(judged, review.pod) : [];
    const what = isTemplate ? 'the pod template of the DaemonSet' : 'the pod';
    return {
      ...this.#decided(account, what, review.reasons, trial?.reasons ?? []),
      pod: review.pod,
      patch: isTemplate ? patch.map((one) => ({ ...one, path: `/spec/template${one.path}` })) : patch,
    };
  }

  /** Whoever puts a pod on a node passes by the scheduler: schedulers may, others need policies that let them. */
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

  /** Who is only tried changes nothing: neither what it would refuse nor what it would allow. */
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

/** As the kubelet of the node creates it. A pod of anybody else is judged, whatever annotations it has. */
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

/** That it is on a node by now was not asked for. */
function withoutBinding(pod: Pod, current: Pod): Pod {
  return pod.spec.nodeName === current.spec.nodeName
    ? { ...pod, spec: { ...pod.spec, nodeName: undefined } }
    : pod;
}

function warning(what: string, reason: Reason): string {
  const shown = what.replace(/^the/, 'this');
  return cut(`a scheduling policy is tried that would refuse ${shown}: ${formatReason(reason)}`, MAX_WARNING);
}

/** What is left of a pair of code units that was cut in two. */
const HALF_A_LETTER = /[\ud800-\udbff]$/;

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).replace(HALF_A_LETTER, '')}…` : text;
}
