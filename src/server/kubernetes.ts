/**
 * Admission webhooks of Kubernetes: the answer says whether a pod is admitted, and what is added to it. Any other status refuses the pod
 * too, by `failurePolicy` in etc/kubernetes.
 */
import type { Context, Middleware } from 'koa';
import { admissionRecord } from '../decisions/record.ts';
import {
  type AdmissionAnswer,
  admissionAnswer,
  type BindingRequest,
  type PodRequest,
  parseAdmissionReview,
} from '../kubernetes/admission-review.ts';
import { jsonBody } from './body.ts';
import type { DecisionRecorder } from './decision-recorder.ts';
import type { Door } from './doors.ts';
import type { KubernetesParts } from './generation.ts';
import { KUBERNETES_PATHS, kubernetesPathOf } from './own-paths.ts';
import { stateOf } from './request-state.ts';

/** Answers if there are scheduling policies, which a reload may change; other requests go on to the next middleware. */
export function kubernetesEndpoints(door: Door, recorder: DecisionRecorder): Middleware {
  return async (ctx, next) => {
    // `ctx.path` parses the URL at each access.
    const at = ctx.req.url?.startsWith(PREFIX) === true ? kubernetesPathOf(ctx.path) : undefined;
    const state = stateOf(ctx);
    const { number, kubernetes } = state.generation;
    // If no token is needed, there is nothing after these paths either.
    if (kubernetes === undefined || at === undefined || (at.token !== undefined && !door.tokens.required)) {
      return next();
    }
    const isAdmission = at.path === KUBERNETES_PATHS.admission;
    if (ctx.method !== 'POST') {
      ctx.status = 405;
      ctx.set('Allow', 'POST');
      return;
    }
    await door.requireProof(ctx);
    const seconds = requestedSeconds(ctx);
    const request = parseAdmissionReview(await jsonBody(ctx));
    const answer = await answerTo(ctx, request, kubernetes, { addDefaults: isAdmission, seconds }, recorder);
    state.headers.push('X-Enforcement-Generation', String(number));
    state.json = JSON.stringify(answer);
    ctx.status = 200;
  };
}

const PREFIX = '/kubernetes/';
const UNTOUCHED = { allowed: true, message: null, patch: [], warnings: [] } as const;

interface ReviewOptions {
  readonly addDefaults: boolean;
  readonly seconds: number;
}

function answerTo(
  ctx: Context,
  request: ReturnType<typeof parseAdmissionReview>,
  parts: KubernetesParts,
  options: ReviewOptions,
  recorder: DecisionRecorder,
): AdmissionAnswer | Promise<AdmissionAnswer> {
  switch (request.kind) {
    case 'other':
      return admissionAnswer(request.uid, UNTOUCHED);
    case 'policy': {
      const message = parts.policyMistake(request.document);
      return admissionAnswer(request.uid, { ...UNTOUCHED, allowed: message === null, message });
    }
    default:
      return review(ctx, request, parts, options, recorder);
  }
}

function review(
  ctx: Context,
  request: PodRequest | BindingRequest,
  { podAdmission }: KubernetesParts,
  { addDefaults, seconds }: ReviewOptions,
  recorder: DecisionRecorder,
): Promise<AdmissionAnswer> {
  const { generation, requestId } = stateOf(ctx);
  const { number } = generation;
  const started = performance.now();
  return generation.inTurn(async (deadline) => {
    const admission =
      request.kind === 'binding'
        ? podAdmission.reviewBinding(request)
        : podAdmission.review(request, { addDefaults });
    // Dry runs are not recorded.
    if (!request.dryRun) {
      const milliseconds = performance.now() - started;
      const operation = addDefaults ? 'kubernetes.admission' : 'kubernetes.validation';
      const facts = { requestId, generation: number, milliseconds, request };
      const room = recorder.record(admissionRecord(operation, admission, facts), deadline);
      if (room !== undefined) {
        await room;
      }
    }
    return admissionAnswer(request.uid, admission);
  }, seconds);
}

/** As Go writes a duration: `10s`, `1m30s`, `500ms`. */
const DURATION =
  /^(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?$/;
/** The whole query string of an API server. */
const PLAIN = /^timeout=(\d{1,6})s$/;

/** How long the API server waits, but at most the deadline of a decision. */
function requestedSeconds(ctx: Context): number {
  const { deadline } = stateOf(ctx).generation.options;
  const plain = PLAIN.exec(ctx.querystring)?.[1];
  const asked = plain === undefined ? writtenSeconds(ctx) : Number(plain);
  return Math.min(asked ?? deadline, deadline);
}

function writtenSeconds(ctx: Context): number | undefined {
  const { timeout } = ctx.query;
  if (timeout === undefined) {
    return undefined;
  }
  const parts = typeof timeout === 'string' && timeout !== '' ? DURATION.exec(timeout) : null;
  if (parts === null) {
    return ctx.throw(400, 'expected a duration such as 10s as the query parameter timeout');
  }
  const [, hours = 0, minutes = 0, seconds = 0, milliseconds = 0] = parts;
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) + Number(milliseconds) / 1000;
}
