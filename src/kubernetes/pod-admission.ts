/** Pods at the door of a cluster: whose policies judge which, what is added to them, and what is only tried. */
import { isDeepStrictEqual } from 'node:util';
import jsonPatch from 'fast-json-patch';
import { type Account, serviceAccount } from './access.ts';
import type { Admission, PodRequest } from './admission-review.ts';
import type { PodReview } from './effective-policy.ts';
import { type Pod, serviceAccountName } from './pod.ts';
import { formatReason, type Reason } from './rules/reason.ts';
import type { SchedulingPolicies } from './scheduling-policies.ts';

/** The controller names a node for each pod of a DaemonSet; whoever is not it can't say to be it. */
const DAEMON_SET_CONTROLLER = 'system:serviceaccount:kube-system:daemon-set-controller';

/** What a pod can be changed in that decides where it runs. */
const SCHEDULING_FIELDS = [
  'schedulerName',
  'priorityClassName',
  'nodeName',
  'nodeSelector',
  'tolerations',
  'affinity',
] as const;

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
}

/** Reviews the pods of a cluster. */
export class PodAdmission {
  readonly #policies: SchedulingPolicies;
  /** Those that are not tried. */
  readonly #enforced: SchedulingPolicies;
  readonly #audited: ReadonlySet<string>;

  /** `audit`: the names of the policies that are tried; `*` = all. */
  constructor(policies: SchedulingPolicies, audit: readonly string[] = []) {
    this.#policies = policies;
    this.#audited = new Set(audit);
    this.#enforced = audit.length === 0 ? policies : policies.without(this.#audited);
  }

  /** `addDefaults`: whether the pod may be patched; where not, it is judged as it stands. */
  review(request: PodRequest, { addDefaults }: { readonly addDefaults: boolean }): DecidedAdmission {
    const { pod, current, namespace, isUpdate, username } = request;
    const account = serviceAccount(namespace, serviceAccountName(pod));
    if (current !== undefined && isSameScheduling(pod, current)) {
      return { account, allowed: true, message: null, patch: [], warnings: [], isAudited: false };
    }
    const options = {
      // Most of what a default would set can't be changed any more.
      addDefaults: addDefaults && !isUpdate,
      isForOneNode: username === DAEMON_SET_CONTROLLER,
    };
    const judged = current === undefined ? pod : withoutBinding(pod, current);
    const { enforced, tried } = this.#judges(account);
    const review: PodReview = enforced?.review(judged, options) ?? {
      allowed: true,
      pod: judged,
      reasons: [],
    };
    // Also where nothing may be added now: if they were enforced, their defaults would have been added before.
    const trial = review.allowed ? tried?.review(judged, { ...options, addDefaults: !isUpdate }) : undefined;
    return {
      account,
      allowed: review.allowed,
      message: review.allowed ? null : this.#message(account, review.reasons),
      patch: review.allowed && review.pod !== judged ? jsonPatch.compare(judged, review.pod) : [],
      warnings: (trial?.reasons ?? []).slice(0, MAX_WARNINGS).map(warning),
      isAudited: trial?.allowed === false,
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

  #message({ user }: Account, reasons: readonly Reason[]): string {
    const shown = reasons.slice(0, MAX_REASONS).map(formatReason).join('; ');
    return cut(`the pod does not fit the scheduling policies of ${user}: ${shown}`, MAX_MESSAGE);
  }
}

function isSameScheduling(pod: Pod, current: Pod): boolean {
  return SCHEDULING_FIELDS.every((field) =>
    isDeepStrictEqual(pod.spec[field] ?? null, current.spec[field] ?? null),
  );
}

/** That it is on a node by now was not asked for. */
function withoutBinding(pod: Pod, current: Pod): Pod {
  return pod.spec.nodeName === current.spec.nodeName
    ? { ...pod, spec: { ...pod.spec, nodeName: undefined } }
    : pod;
}

function warning(reason: Reason): string {
  return cut(`a scheduling policy is tried that would refuse this pod: ${formatReason(reason)}`, MAX_WARNING);
}

/** What is left of a pair of code units that was cut in two. */
const HALF_A_LETTER = /[\ud800-\udbff]$/;

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).replace(HALF_A_LETTER, '')}…` : text;
}
