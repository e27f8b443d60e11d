/**
 * Blazar's external-service protocol: what comes in is judged by the chain, 204 is yes, 403 is no with a reason.
 * Source: Blazar docs, "Usage Enforcement", ExternalServiceFilter.
 */
import Router from '@koa/router';
import type { Context } from 'koa';
import type { UsageEnforcement } from '../enforcement.ts';
import type { CreateRequest, EndRequest, UpdateRequest } from '../lease.ts';
import type { Decision } from '../verdict.ts';
import { jsonBody } from './body.ts';

/** Blazar can't take a changed lease: where a filter changes one, the answer is a 403 that says what to ask for. */
const CHECK_OPTIONS = { acceptsChanges: false };

/** The three endpoints, under `/` and `/v1`. The chain itself checks that a body is a request. */
export function blazarRoutes(enforcement: UsageEnforcement): Router {
  const router = new Router();
  router.post(['/check-create', '/v1/check-create'], async (ctx) => {
    const request = (await jsonBody(ctx)) as CreateRequest;
    answer(ctx, await enforcement.checkCreate(request, CHECK_OPTIONS));
  });
  router.post(['/check-update', '/v1/check-update'], async (ctx) => {
    const request = (await jsonBody(ctx)) as UpdateRequest;
    answer(ctx, await enforcement.checkUpdate(request, CHECK_OPTIONS));
  });
  router.post(['/on-end', '/v1/on-end'], async (ctx) => {
    await enforcement.onEnd((await jsonBody(ctx)) as EndRequest);
    ctx.status = 204;
  });
  return router;
}

function answer(ctx: Context, decision: Decision): void {
  if (decision.allowed) {
    ctx.status = 204;
  } else {
    ctx.status = 403;
    ctx.body = { message: decision.message };
  }
}
