/**
 * SkyPilot's RESTful admin policy: 200 returns the request as changed by the policies, 400 the reason of a
 * rejection as plain text. Any other status refuses the request too: SkyPilot treats it as a fault.
 */
import { type Context, HttpError, type Middleware } from 'koa';
import { reviewRecord } from '../../decisions/review-record.ts';
import { decodeYielding, InvalidBodyError, type ReceivedRequest } from '../../skypilot/request/wire.ts';
import type { Authenticator } from '../authentication/authenticators.ts';
import type { SkypilotParts } from '../configuration/generation.ts';
import type { DecisionRecorder } from '../decisions/recorder.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { isSkypilotPath } from '../own-paths.ts';
import { bodyLimit, stateOf } from '../request-state.ts';
import { TooMuchJsonError } from './json-pieces.ts';
import { parsedJson, readJson } from './read-body.ts';

/** Serves the configured path, which a reload may change; passes other requests on. */
export function skypilotEndpoint(
  authenticator: Authenticator,
  recorder: DecisionRecorder,
  metrics: Metrics,
): Middleware {
  return async (ctx, next) => {
    const { skypilot } = stateOf(ctx).generation;
    if (!servesSkypilot(skypilot, ctx.path)) {
      return next();
    }
    if (ctx.method !== 'POST') {
      ctx.status = 405;
      ctx.set('Allow', 'POST');
      return;
    }
    await authenticator.requireProof(ctx.req, ctx.ip);
    await review(ctx, skypilot, await receivedRequest(ctx), recorder, metrics);
  };
}

/** Whether this is SkyPilot's path, and there is a policy. */
export function servesSkypilot({ options, policies }: SkypilotParts, path: string): boolean {
  return isSkypilotPath(options.path, path) && !policies.isEmpty;
}

/** A body that is not a request gets 422, since 400 means a rejection. */
async function receivedRequest(ctx: Context): Promise<ReceivedRequest> {
  try {
    const body = await readJson(ctx.req, bodyLimit(ctx));
    return await decodeYielding(typeof body === 'string' ? await innerJson(body) : body);
  } catch (thrown) {
    if (thrown instanceof InvalidBodyError || (thrown instanceof HttpError && thrown.status === 400)) {
      return ctx.throw(422, thrown.message);
    }
    throw thrown;
  }
}

/** SkyPilot sends a JSON text that contains JSON. */
async function innerJson(text: string): Promise<unknown> {
  try {
    return await parsedJson(Buffer.from(text));
  } catch (thrown) {
    const expected = thrown instanceof TooMuchJsonError ? thrown.message : 'JSON in the JSON string';
    throw new InvalidBodyError(`the body: expected ${expected}`);
  }
}

async function review(
  ctx: Context,
  { options, policies }: SkypilotParts,
  request: ReceivedRequest,
  recorder: DecisionRecorder,
  metrics: Metrics,
): Promise<void> {
  const { generation, requestId, headers } = stateOf(ctx);
  const { number } = generation;
  const started = performance.now();
  await generation.inTurn(async (deadline) => {
    await recorder.room(deadline);
    const reviewed = await policies.review(request, { deadline, requestId });
    const milliseconds = performance.now() - started;
    for (const policy of reviewed.mismatches) {
      metrics.skypilotMismatches.inc({ filter: policy });
    }
    const facts = { requestId, generation: number, milliseconds, request };
    await recorder.record(reviewRecord(reviewed, facts), undefined);
    if (reviewed.failed) {
      ctx.status = 500;
      ctx.body = { message: reviewed.message, request_id: requestId };
      return;
    }
    headers.push('X-Enforcement-Generation', String(number));
    if (reviewed.answer !== null) {
      ctx.type = 'application/json';
      ctx.body = reviewed.answer;
    } else {
      ctx.status = 400;
      ctx.type = 'text/plain';
      ctx.body = reviewed.message ?? '';
    }
  }, options.deadline);
}
