/**
 * Admission webhooks of Kubernetes: the response says whether a pod is admitted, and with which additions. A
 * pod that cannot be checked is refused by a response, too. Any other status, such as for a wrong token, is
 * subject to `failurePolicy` in etc/kubernetes.
 */
import type { Context, Middleware } from 'koa';
import { OverloadedError } from '../../base/concurrency-limiter.ts';
import { type Deadline, withinDeadline } from '../../base/deadline.ts';
import { InvalidRequestError } from '../../base/errors.ts';
import { inSpan, shownAttribute } from '../../base/tracing.ts';
import { admissionRecord } from '../../decisions/review-record.ts';
import { warning } from '../../kubernetes/admission/admission-messages.ts';
import {
  type AdmissionAnswer,
  admissionAnswer,
  type BindingRequest,
  type PodRequest,
  type parseAdmissionReview,
  type WorkloadRequest,
} from '../../kubernetes/admission/admission-review.ts';
import type { DecidedAdmission, PodAdmission } from '../../kubernetes/admission/pod-admission.ts';
import { type ReviewedKind, workloadKindOf } from '../../kubernetes/admission/pod-kinds.ts';
import type { WorkloadReview } from '../../kubernetes/admission/workloads.ts';
import type { Authenticator } from '../authentication/authenticators.ts';
import type { KubernetesParts } from '../configuration/generation.ts';
import type { DecisionRecorder } from '../decisions/recorder.ts';
import type { KubernetesReports } from '../followers/kubernetes-sources.ts';
import type { KubernetesMetrics } from '../metrics/kubernetes-metrics.ts';
import { KUBERNETES_PATHS, kubernetesPathOf } from '../own-paths.ts';
import { stateOf } from '../request-state.ts';
import type { FailedReviews } from './failed-reviews.ts';
import { readReview, type UnreadBody } from './review-body.ts';

/** Receivers of reviews. */
interface ReviewSinks {
  readonly recorder: DecisionRecorder;
  readonly failures: FailedReviews;
  /** Default: no reports to the cluster. */
  readonly reports?: KubernetesReports | undefined;
  readonly metrics: KubernetesMetrics;
}

/** Serves reviews if there are scheduling policies, which a reload may change; passes other requests on. */
export function kubernetesEndpoints(authenticator: Authenticator, sinks: ReviewSinks): Middleware {
  return async (ctx, next) => {
    // `ctx.path` parses the URL at each access.
    const at = ctx.req.url?.startsWith(PREFIX) === true ? kubernetesPathOf(ctx.path) : undefined;
    const state = stateOf(ctx);
    const { number, kubernetes } = state.generation;
    // Without tokens, none can be appended to these paths.
    if (
      kubernetes === undefined ||
      at === undefined ||
      (at.token !== undefined && !authenticator.tokens.required)
    ) {
      return next();
    }
    const isAdmission = at.path === KUBERNETES_PATHS.admission;
    if (ctx.method !== 'POST') {
      ctx.status = 405;
      ctx.set('Allow', 'POST');
      return;
    }
    const began = performance.now();
    const proof = authenticator.requireProof(ctx.req, ctx.ip);
    // Awaiting `undefined` would be too late to collect the body: a stream would cost more than the review.
    if (proof !== undefined) {
      await proof;
    }
    const asked = requestedSeconds(ctx);
    const read = await readReview(ctx);
    const seconds = Math.max(0, asked - (performance.now() - began) / 1000);
    const answer =
      read.unread === undefined
        ? await answerTo(ctx, read.request, kubernetes, { addDefaults: isAdmission, seconds, ...sinks })
        : answerToUnread(read, kubernetes, sinks.failures, state.requestId);
    state.headers.push('X-Enforcement-Generation', String(number));
    state.json = JSON.stringify(answer);
    ctx.status = 200;
  };
}

const PREFIX = '/kubernetes/';
const UNTOUCHED = { allowed: true, message: null, patch: [], warnings: [] } as const;
/** The part of the time that is reserved for the response, in seconds at most. */
const RESERVE = 0.2;
const MAX_RESERVE_SECONDS = 1;
/** How long the record of an unchecked pod may wait for room in the log: the response must be in time. */
const RECORD_SECONDS = 0.2;

interface ReviewOptions extends ReviewSinks {
  readonly addDefaults: boolean;
  readonly seconds: number;
}

function answerTo(
  ctx: Context,
  request: ReturnType<typeof parseAdmissionReview>,
  { podAdmission, workloads, reviewPolicy }: KubernetesParts,
  options: ReviewOptions,
): AdmissionAnswer | Promise<AdmissionAnswer> {
  switch (request.kind) {
    case 'other':
      return admissionAnswer(request.uid, UNTOUCHED);
    case 'policy':
      return admissionAnswer(request.uid, reviewPolicy(request));
    case 'workload':
      return workloads.concerns(request)
        ? reviewWorkload(ctx, request, workloads, podAdmission, options)
        : admissionAnswer(request.uid, UNTOUCHED);
    default:
      return reviewPod(ctx, request, podAdmission, options);
  }
}

/** Rejects an unreadable body by the same rules as a pod that cannot be checked. */
function answerToUnread(
  { unread: { uid, kind, resource, isForRulesAlone }, why }: UnreadBody,
  { podAdmission, workloads }: KubernetesParts,
  failures: FailedReviews,
  requestId: string,
): AdmissionAnswer {
  const workload = workloadKindOf(resource.group, resource.resource) ?? '';
  const isIgnored = kind === 'workload' && workloads.mode === 'ignore';
  const { rulesEnforce } = podAdmission;
  if (kind === undefined || isIgnored || (isForRulesAlone && rulesEnforce === undefined)) {
    return admissionAnswer(uid, UNTOUCHED);
  }
  const refusesNothing = isForRulesAlone ? rulesEnforce === false : podAdmission.refusesNothing;
  const message = failures.unread(why, WHAT[kind] ?? `this ${workload}`, requestId);
  if (kind === 'workload' && (workloads.mode === 'warn' || refusesNothing)) {
    return admissionAnswer(uid, workloads.unchecked({ workload }));
  }
  return refusesNothing && kind !== 'policy'
    ? admissionAnswer(uid, {
        ...UNTOUCHED,
        warnings: [warning(`scheduling policies in audit mode could not be tried: ${message}`)],
      })
    : admissionAnswer(uid, { ...UNTOUCHED, allowed: false, message });
}

const WHAT: Readonly<Partial<Record<ReviewedKind, string>>> = {
  pod: 'the pod',
  binding: 'the binding',
  template: 'the DaemonSet',
  policy: 'the scheduling policy',
};

/** Rejects, and records, a pod that cannot be checked. */
async function reviewPod(
  ctx: Context,
  request: PodRequest | BindingRequest,
  podAdmission: PodAdmission,
  options: ReviewOptions,
): Promise<AdmissionAnswer> {
  const { addDefaults, failures } = options;
  const record = recording(ctx, request, options);
  try {
    return await review(
      ctx,
      request,
      (wait) => podAdmission.admit(request, { addDefaults, wait }),
      record,
      options,
    );
  } catch (thrown) {
    const admission = failures.admission(thrown, request, stateOf(ctx).requestId, podAdmission);
    // Overload is only counted: a record would need room, too.
    if (!(thrown instanceof OverloadedError)) {
      await withinDeadline(RECORD_SECONDS, (deadline) => record(admission, deadline)).catch(() => {});
    }
    return admissionAnswer(request.uid, admission);
  }
}

/** If only warnings are requested, failures do not refuse the workload: its pods are checked again. */
async function reviewWorkload(
  ctx: Context,
  request: WorkloadRequest,
  workloads: WorkloadReview,
  { refusesNothing }: PodAdmission,
  options: ReviewOptions,
): Promise<AdmissionAnswer> {
  const { failures } = options;
  const { requestId } = stateOf(ctx);
  const record = recording(ctx, request, options);
  try {
    return await review(ctx, request, (wait) => workloads.admit(request, wait), record, options);
  } catch (thrown) {
    if (workloads.mode === 'refuse' && !refusesNothing) {
      const failure =
        thrown instanceof InvalidRequestError
          ? { message: failures.unread(thrown.message, `this ${request.workload}`, requestId) }
          : failures.failure(thrown, `this ${request.workload}'s pods`, requestId);
      return admissionAnswer(request.uid, { ...UNTOUCHED, ...failure, allowed: false });
    }
    failures.unchecked(thrown, requestId);
    return admissionAnswer(request.uid, workloads.unchecked(request));
  }
}

type RecordAdmission = (admission: DecidedAdmission, deadline: Deadline) => Promise<void>;

function recording(
  ctx: Context,
  request: PodRequest | BindingRequest | WorkloadRequest,
  { addDefaults, recorder, metrics, reports }: ReviewOptions,
): RecordAdmission {
  const { generation, requestId } = stateOf(ctx);
  const started = performance.now();
  return async (admission, deadline) => {
    // Dry runs are not recorded.
    if (request.dryRun) {
      return;
    }
    metrics.judged(admission);
    if (!admission.allowed && request.kind === 'pod') {
      reports?.refused(request, admission);
    }
    const milliseconds = performance.now() - started;
    const operation = addDefaults ? 'kubernetes.admission' : 'kubernetes.validation';
    const facts = { requestId, generation: generation.number, milliseconds, request };
    await recorder.record(admissionRecord(operation, admission, facts), deadline);
  };
}

function review(
  ctx: Context,
  request: PodRequest | BindingRequest | WorkloadRequest,
  admit: (wait: Deadline) => Promise<DecidedAdmission>,
  record: RecordAdmission,
  { seconds }: ReviewOptions,
): Promise<AdmissionAnswer> {
  return stateOf(ctx).generation.inTurn(async (deadline) => {
    const admission = await tracedAdmission(request, () => admit(deadline));
    await record(admission, deadline);
    return admissionAnswer(request.uid, admission);
  }, seconds);
}

/** Go's duration format: `10s`, `1m30s`, `500ms`. */
const DURATION =
  /^(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?$/;

/**
 * The time limit of a review: less than the API server waits, which would admit an object with
 * `failurePolicy: Ignore` if the refusal came late; and at most the deadline of a decision.
 */
function requestedSeconds(ctx: Context): number {
  const { deadline } = stateOf(ctx).generation.options;
  const { timeout } = ctx.query;
  if (timeout === undefined) {
    return deadline;
  }
  const parts = typeof timeout === 'string' && timeout !== '' ? DURATION.exec(timeout) : null;
  if (parts === null) {
    return ctx.throw(400, 'expected a duration such as 10s as the query parameter timeout');
  }
  const [, hours = 0, minutes = 0, seconds = 0, milliseconds = 0] = parts;
  const asked = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) + Number(milliseconds) / 1000;
  return Math.min(asked - Math.min(MAX_RESERVE_SECONDS, asked * RESERVE), deadline);
}

/** `admit`: checks the request, and returns the sources of its policies. */
function tracedAdmission(
  request: PodRequest | BindingRequest | WorkloadRequest,
  admit: () => Promise<DecidedAdmission>,
): Promise<DecidedAdmission> {
  const { kind, namespace, dryRun } = request;
  return inSpan(
    {
      name: `admission ${kind}`,
      attributes: {
        'k8s.namespace.name': shownAttribute(namespace),
        'blazar_enforcement.admission.kind': kind,
        'blazar_enforcement.admission.dry_run': dryRun,
      },
    },
    admit,
    ({ allowed, failed, isAudited, patch }) => ({
      attributes: {
        'blazar_enforcement.admission.allowed': allowed,
        'blazar_enforcement.admission.audit': isAudited,
        'blazar_enforcement.admission.changed': patch.length > 0,
        'blazar_enforcement.admission.failed': failed !== undefined,
      },
      errorType: failed === undefined ? undefined : '_OTHER',
    }),
  );
}
