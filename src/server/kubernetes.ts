/**
 * Admission webhooks of Kubernetes: what comes in is a review of a pod, what goes out says whether it is admitted, and what
 * is added to it. Whatever else is answered refuses the pod too: see `failurePolicy` in etc/kubernetes.
 */
import type { Context, Middleware } from 'koa';
import { admissionAnswer, type PodRequest, parseAdmissionReview } from '../kubernetes/admission-review.ts';
import { jsonBody } from './body.ts';
import { type DecisionKeepers, keep } from './deciding.ts';
import { admissionRecord } from './decision-record.ts';
import type { KubernetesParts } from './generation.ts';
import { KUBERNETES_PATHS } from './own-paths.ts';
import { stateOf } from './request-state.ts';

/** Answers where there are scheduling policies, which a reload may change; everything else goes on. */
export function kubernetesEndpoints(keepers: DecisionKeepers): Middleware {
  return async (ctx, next) => {
    const { generation, headers } = stateOf(ctx);
    const { kubernetes } = generation;
    const { path } = ctx;
    const isAdmission = path === KUBERNETES_PATHS.admission;
    if (kubernetes === undefined || !(isAdmission || path === KUBERNETES_PATHS.validation)) {
      return next();
    }
    if (ctx.method !== 'POST') {
      ctx.status = 405;
      ctx.set('Allow', 'POST');
      return;
    }
    const seconds = requestedSeconds(ctx);
    const request = parseAdmissionReview(await jsonBody(ctx));
    const answer =
      request.pod === undefined
        ? admissionAnswer(request.uid, UNTOUCHED)
        : await review(ctx, request, kubernetes, { addDefaults: isAdmission, seconds }, keepers);
    headers.push('X-Enforcement-Generation', String(generation.number));
    ctx.type = 'application/json';
    ctx.body = JSON.stringify(answer);
  };
}

const UNTOUCHED = { allowed: true, message: null, patch: [], warnings: [] } as const;

interface ReviewOptions {
  readonly addDefaults: boolean;
  readonly seconds: number;
}

async function review(
  ctx: Context,
  request: PodRequest,
  { podAdmission }: KubernetesParts,
  { addDefaults, seconds }: ReviewOptions,
  keepers: DecisionKeepers,
) {
  const { generation, requestId } = stateOf(ctx);
  const { number } = generation;
  const started = performance.now();
  return generation.inTurn(async (deadline) => {
    const admission = podAdmission.review(request, { addDefaults });
    // Of a dry run nothing comes, so there is nothing to keep of it.
    if (!request.dryRun) {
      const milliseconds = performance.now() - started;
      const operation = addDefaults ? 'kubernetes.admission' : 'kubernetes.validation';
      const facts = { requestId, generation: number, milliseconds, request };
      await keep(admissionRecord(operation, admission, facts), keepers, deadline);
    }
    return admissionAnswer(request.uid, admission);
  }, seconds);
}

/** As Go prints a duration: `10s`, `1m30s`, `500ms`. */
const DURATION =
  /^(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?$/;

/** How long the API server waits, and no longer than any decision may take. */
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
  return Math.min(asked, deadline);
}
