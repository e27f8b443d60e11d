/**
 * Reviews Deployments, Jobs and the like for the pods that they would create, so that users need not wait for
 * pods that never come. Only the review of the pods themselves is enforced.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Wait } from '../../base/deadline.ts';
import { InvalidRequestError } from '../../base/errors.ts';
import { valueAt } from '../../base/yaml/tree.ts';
import type { KubernetesOptions } from '../options.ts';
import type { ClusterOptions } from '../policies/cluster-settings.ts';
import { parsePod } from '../policies/pod.ts';
import {
  auditWords,
  messagesOf,
  refusal,
  message as shown,
  triedRules,
  warning,
  warningsFor,
} from './admission-messages.ts';
import type { Admission, PodRequest, WorkloadRequest } from './admission-review.ts';
import type { DecidedAdmission, PodAdmission } from './pod-admission.ts';
import { asAdmitted, POD_KINDS } from './pod-kinds.ts';

export interface WorkloadReviewOptions {
  /** Default: `warn`. */
  readonly mode?: KubernetesOptions['workloads'];
  /** What the API server fills in. */
  readonly settings?: ClusterOptions;
}

export class WorkloadReview {
  readonly mode: KubernetesOptions['workloads'];
  readonly #pods: PodAdmission;
  readonly #settings: ClusterOptions;

  constructor(pods: PodAdmission, { mode = 'warn', settings = {} }: WorkloadReviewOptions = {}) {
    this.mode = mode;
    this.#pods = pods;
    this.#settings = settings;
  }

  /**
   * Whether its pods are to be checked. Not if another object controls it: the warning would not be read. Not
   * if its template is unchanged: its author was warned.
   */
  concerns({ workload, object, current }: WorkloadRequest): boolean {
    const path = POD_KINDS[workload]?.path ?? [];
    return (
      this.mode !== 'ignore' &&
      !isControlled(object) &&
      (current === undefined || !isDeepStrictEqual(valueAt(object, path), valueAt(current, path)))
    );
  }

  /**
   * Checks the pods that it would create, as they would be admitted later. Unless `mode` is `refuse`, reasons
   * to refuse them are warnings. Rejects with `SourceUnavailableError` as `PodAdmission.admit` does, and with
   * `InvalidRequestError` if there is no pod template.
   */
  async admit(request: WorkloadRequest, wait?: Wait): Promise<DecidedAdmission> {
    const admission = await this.#pods.admit(this.#laterPod(request), {
      addDefaults: true,
      workload: request.workload,
      ...(wait !== undefined && { wait }),
    });
    const { account, allowed, reasons, tried, rules = [] } = admission;
    const pods = `this ${request.workload}'s pods`;
    const decided = { ...admission, patch: [], message: null };
    if (allowed) {
      const warnings = [...warningsFor(auditWords(pods), tried), ...triedRules(pods, rules)];
      return { ...decided, warnings };
    }
    const words = `${pods} would be refused`;
    const said = messagesOf(rules);
    if (this.mode === 'refuse') {
      const byPolicies = reasons.length === 0 ? [] : [refusal(`${words}: they do not fit`, account, reasons)];
      const byRules = reasons.length === 0 ? [`${words}: ${said.join(' ')}`] : said;
      return { ...decided, message: shown([...byPolicies, ...byRules].join(' ')) };
    }
    return {
      ...decided,
      allowed: true,
      isAudited: true,
      reasons: [],
      tried: reasons,
      // They refuse nothing before there are pods.
      rules: rules.map((one) => ({ ...one, audit: true })),
      warnings: [...warningsFor(words, reasons), ...said.map((one) => warning(`${words}: ${one}`))],
    };
  }

  /** The answer if it is unknown whether its pods would be refused, and only a warning was requested. */
  unchecked({ workload }: Pick<WorkloadRequest, 'workload'>): Admission {
    const text = `it could not be checked whether this ${workload}'s pods fit the scheduling policies`;
    return { allowed: true, message: null, patch: [], warnings: [warning(text)] };
  }

  /** The pod that the controller will create, as the webhook will get it. */
  #laterPod({ uid, dryRun, workload, namespace, name, object }: WorkloadRequest): PodRequest {
    if (namespace === '') {
      throw new InvalidRequestError('request.namespace', 'expected the namespace of the workload');
    }
    const path = POD_KINDS[workload]?.path ?? [];
    const template = parsePod(valueAt(object, path), ['request.object', ...path].join('.'));
    return {
      kind: 'pod',
      uid,
      dryRun,
      namespace,
      name,
      pod: asAdmitted(template, false, this.#settings),
      current: undefined,
      isUpdate: false,
      // A controller: policies do not cover it, and it is no kubelet and no DaemonSet controller, whose pods
      // are special.
      username: undefined,
      groups: [],
    };
  }
}

function isControlled(object: unknown): boolean {
  const owners = valueAt(object, ['metadata', 'ownerReferences']);
  return Array.isArray(owners) && owners.some((owner: unknown) => valueAt(owner, ['controller']) === true);
}
