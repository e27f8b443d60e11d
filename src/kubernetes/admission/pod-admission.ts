/** Reviews the pods of a cluster: selects the policies, adds defaults, handles audit mode. */
import { isDeepStrictEqual } from 'node:util';
import jsonPatch from 'fast-json-patch';
import type { Wait } from '../../base/deadline.ts';
import type { RuleOutcomes } from '../../filter/verdict.ts';
import { type Account, type AccountPolicies, type PolicySource, serviceAccount } from '../policies/access.ts';
import { SCHEDULERS } from '../policies/cluster-settings.ts';
import type { PodReview } from '../policies/effective-policy.ts';
import { type Pod, serviceAccountName } from '../policies/pod.ts';
import type { Reason } from '../policies/rules/reason.ts';
import {
  auditWords,
  message as cutMessage,
  messagesOf,
  refusal,
  triedRules,
  warningsFor,
} from './admission-messages.ts';
import type { Admission, BindingRequest, PodRequest } from './admission-review.ts';
import type { PodRules } from './pod-rules.ts';

/** The controller sets the node of each pod of a DaemonSet. Others cannot impersonate it. */
export const DAEMON_SET_CONTROLLER = 'system:serviceaccount:kube-system:daemon-set-controller';

/** The kubelet reports a static pod with this annotation. The pod runs whatever a webhook answers. */
export const MIRROR = 'kubernetes.io/config.mirror';
export const NODES = 'system:nodes';
export const NODE = 'system:node:';

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

/** The service account of a pod: the first that is set. These fields of a pod are immutable. */
export const ACCOUNT_FIELDS = ['serviceAccountName', 'serviceAccount'] as const;

/** All policies are in audit mode. */
export const AUDIT_ALL = '*';

export interface DecidedAdmission extends Admission {
  readonly account: Account;
  /** Policies in audit mode would have rejected the pod. */
  readonly isAudited: boolean;
  /** The individual reasons. Empty when allowed. */
  readonly reasons: readonly Reason[];
  /** Why policies in audit mode would have rejected it. Empty when rejected. */
  readonly tried: readonly Reason[];
  /** The pod as admitted; absent for a binding. */
  readonly pod?: Pod;
  /** Rules that rejected or failed, besides the policies. */
  readonly rules?: RuleOutcomes | undefined;
}

/** No policy applies to it. */
function untouched({ pod }: PodRequest | BindingRequest, account: Account): DecidedAdmission {
  return {
    account,
    allowed: true,
    message: null,
    patch: [],
    warnings: [],
    isAudited: false,
    reasons: [],
    tried: [],
    ...(pod !== undefined && { pod }),
  };
}

export interface PodAdmissionOptions {
  /** Names of the policies in audit mode; `*` = all. Default: none. */
  readonly audit?: readonly string[];
  /** Users that may assign any pod to any node. Default: the scheduler of Kubernetes. */
  readonly schedulers?: readonly string[];
  /** Check every pod after the policies. Default: none. */
  readonly rules?: PodRules | undefined;
}

export interface AdmissionOptions {
  /** Whether the response may patch the pod. Otherwise the pod is checked as it is. */
  readonly addDefaults: boolean;
  /** The kind of object whose controller will create the pod. Default: it is created now. */
  readonly workload?: string | undefined;
}

export class PodAdmission {
  readonly #schedulers: ReadonlySet<string>;
  readonly #source: PolicySource | undefined;
  readonly #audited: ReadonlySet<string>;
  readonly #rules: PodRules | undefined;

  /** `source`: `undefined` = there are no policies, only rules. */
  constructor(
    source: PolicySource | undefined,
    { audit = [], schedulers = SCHEDULERS, rules }: PodAdmissionOptions = {},
  ) {
    this.#rules = rules;
    this.#source = source;
    this.#schedulers = new Set(schedulers);
    this.#audited = new Set(audit);
  }

  /** Whether rules apply besides the policies, and may refuse pods. `undefined` = no rules. */
  get rulesEnforce(): boolean | undefined {
    return this.#rules?.enforces;
  }

  /** All policies and all rules are in audit mode. */
  get refusesNothing(): boolean {
    return this.#audited.has(AUDIT_ALL) && this.#rules?.enforces !== true;
  }

  /** Gets the policies from the source, and checks. Rejects with `SourceUnavailableError` if they are unknown. */
  async admit(
    request: PodRequest | BindingRequest,
    options: AdmissionOptions & { readonly wait?: Wait },
  ): Promise<DecidedAdmission> {
    const account = accountOf(request);
    if (this.#source === undefined || this.#needsNoPolicy(request)) {
      return this.#ruled(request, untouched(request, account), options);
    }
    const policies = this.#source.policiesOf(account, options.wait);
    const chosen = policies instanceof Promise ? await policies : policies;
    return this.#ruled(request, this.#judged(request, account, chosen, options), options);
  }

  /** Adds the outcomes of the rules: the answer has the reasons of both. */
  #ruled(
    request: PodRequest | BindingRequest,
    admission: DecidedAdmission,
    { workload }: AdmissionOptions,
  ): DecidedAdmission {
    if (this.#rules === undefined || request.kind === 'binding' || isMirror(request)) {
      return admission;
    }
    const said = this.#rules.judge(request, admission.pod ?? request.pod, workload);
    if (said.length === 0) {
      return admission;
    }
    const refused = messagesOf(said);
    if (refused.length > 0) {
      const before = admission.message === null ? [] : [admission.message];
      return {
        ...admission,
        allowed: false,
        patch: [],
        warnings: [],
        isAudited: false,
        tried: [],
        rules: said,
        message: cutMessage([...before, ...refused].join(' ')),
      };
    }
    return !admission.allowed
      ? { ...admission, rules: said }
      : {
          ...admission,
          rules: said,
          isAudited: true,
          warnings: [...admission.warnings, ...triedRules('this pod', said)],
        };
  }

  /** As `admit`, with the policies of the request's account, which are already known. */
  review(
    request: PodRequest | BindingRequest,
    policies: AccountPolicies,
    options: AdmissionOptions,
  ): DecidedAdmission {
    const account = accountOf(request);
    const admission = this.#needsNoPolicy(request)
      ? untouched(request, account)
      : this.#judged(request, account, policies, options);
    return this.#ruled(request, admission, options);
  }

  /** Nothing changes that policies cover, or Kubernetes itself has put the pod on its node. */
  #needsNoPolicy(request: PodRequest | BindingRequest): boolean {
    if (request.kind === 'binding') {
      return this.#schedulers.has(request.username ?? '');
    }
    const { pod, current } = request;
    return (current !== undefined && isSameScheduling(pod, current)) || isMirror(request);
  }

  #judged(
    request: PodRequest | BindingRequest,
    account: Account,
    policies: AccountPolicies,
    options: AdmissionOptions,
  ): DecidedAdmission {
    return request.kind === 'binding'
      ? this.#binding(request, account, policies)
      : this.#pod(request, account, policies, options);
  }

  #pod(
    { kind, pod, current, isUpdate, username }: PodRequest,
    account: Account,
    policies: AccountPolicies,
    { addDefaults }: AdmissionOptions,
  ): DecidedAdmission {
    const isTemplate = kind === 'template';
    // Most fields that a default would set are immutable after creation.
    const canAdd = isTemplate || !isUpdate;
    const options = {
      addDefaults: addDefaults && canAdd,
      isForOneNode: !isTemplate && username === DAEMON_SET_CONTROLLER,
      // A changed template creates new pods.
      current: isTemplate ? undefined : current,
    };
    const judged = current === undefined || isTemplate ? pod : withoutBinding(pod, current);
    const { enforced, tried } = this.#judges(policies);
    const review: PodReview = enforced?.review(judged, options) ?? {
      allowed: true,
      pod: judged,
      reasons: [],
    };
    // Adds defaults even if the response cannot: enforced policies would have added them earlier.
    const trial = review.allowed ? tried?.review(judged, { ...options, addDefaults: canAdd }) : undefined;
    const patch = review.allowed && review.pod !== judged ? jsonPatch.compare(judged, review.pod) : [];
    const what = isTemplate ? 'the pod template of the DaemonSet' : 'the pod';
    return {
      // Not after the spread: see `parseAdmissionReview`.
      pod: review.pod,
      ...this.#decided(account, what, review.reasons, trial?.reasons ?? []),
      patch: isTemplate ? patch.map((one) => ({ ...one, path: `/spec/template${one.path}` })) : patch,
    };
  }

  /** A Binding bypasses the scheduler: schedulers may create one, other users need policies that allow it. */
  #binding({ node }: BindingRequest, account: Account, policies: AccountPolicies): DecidedAdmission {
    const { enforced, tried } = this.#judges(policies);
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
      message: allowed ? null : refusal(`${what} does not fit`, account, reasons),
      patch: [],
      warnings: allowed ? warningsFor(auditWords(what.replace(/^the/, 'this')), tried) : [],
      isAudited: allowed && tried.length > 0,
      reasons,
      tried: allowed ? tried : [],
    };
  }

  /** Policies in audit mode change nothing: neither what they would reject nor what they would allow. */
  #judges(policies: AccountPolicies) {
    const { names, all } = policies;
    const isTried = (name: string) => this.#audited.has(name);
    if (!isTried(AUDIT_ALL) && !names.some(isTried)) {
      return { enforced: all, tried: undefined };
    }
    const isAllTried = isTried(AUDIT_ALL) || names.every(isTried);
    return { enforced: isAllTried ? undefined : policies.without(this.#audited), tried: all };
  }
}

/** The account whose policies a request must fit: the pod's, or that of the user who binds it. */
export function accountOf(request: PodRequest | BindingRequest): Account {
  return request.kind === 'binding'
    ? { user: request.username ?? '', groups: request.groups, namespace: request.namespace }
    : serviceAccount(request.namespace, serviceAccountName(request.pod));
}

/**
 * Whether the kubelet of the pod's own node creates it. Pods of other users are checked, whatever their
 * annotations.
 */
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
