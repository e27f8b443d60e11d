/**
 * Blazar's external-service protocol: what comes in is judged by the chain, 204 is yes, 403 is no with a reason.
 * Source: Blazar docs, "Usage Enforcement", ExternalServiceFilter.
 */
import Router from '@koa/router';
import type { Context } from 'koa';
import { withinDeadline } from '../deadline.ts';
import type { UsageEnforcement } from '../enforcement.ts';
import type { CreateRequest, EndRequest, UpdateRequest } from '../lease.ts';
import type { Decision } from '../verdict.ts';
import { jsonBody } from './body.ts';

/**
 * The three endpoints, under `/` and `/v1`. The chain itself checks that a body is a request. Blazar can't take a changed
 * lease: where a filter changes one, the answer is a 403 that says what to ask for. `deadline` is in seconds.
 */
export function blazarRoutes(enforcement: UsageEnforcement, deadline: number): Router {
  const router = new Router();
  router.post(['/check-create', '/v1/check-create'], async (ctx) => {
    const request = (await jsonBody(ctx)) as CreateRequest;
    answer(
      ctx,
      await withinDeadline(deadline, (signal) =>
        enforcement.checkCreate(request, { signal, acceptsChanges: false }),
      ),
    );
  });
  router.post(['/check-update', '/v1/check-update'], async (ctx) => {
    const request = (await jsonBody(ctx)) as UpdateRequest;
    answer(
      ctx,
      await withinDeadline(deadline, (signal) =>
        enforcement.checkUpdate(request, { signal, acceptsChanges: false }),
      ),
    );
  });
  router.post(['/on-end', '/v1/on-end'], async (ctx) => {
    const request = (await jsonBody(ctx)) as EndRequest;
    await withinDeadline(deadline, (signal) => enforcement.onEnd(request, { signal }));
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
