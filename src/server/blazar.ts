/**
 * Blazar's external-service protocol: what comes in is judged by the chain, 204 is yes, 403 is no with a reason.
 * Source: Blazar docs, "Usage Enforcement", ExternalServiceFilter.
 */
import Router from '@koa/router';
import type { Context } from 'koa';
import type { CreateRequest, EndRequest, UpdateRequest } from '../lease.ts';
import type { Decision, EndReport } from '../verdict.ts';
import { requireToken } from './authentication.ts';
import { jsonBody } from './body.ts';
import type { AcceptedTokens } from './credentials.ts';
import { type Ask, type DecidedRequest, type DecisionKeepers, decide } from './deciding.ts';

/** Under `/` and `/v1`. Blazar can't take a changed lease: where a filter changes one, the 403 says what to ask for. */
const ENDPOINTS: Readonly<Record<string, (body: unknown) => Ask>> = {
  'check-create': (body) => (enforcement, deadline) =>
    enforcement.checkCreate(body as CreateRequest, { deadline, acceptsChanges: false }),
  'check-update': (body) => (enforcement, deadline) =>
    enforcement.checkUpdate(body as UpdateRequest, { deadline, acceptsChanges: false }),
  'on-end': (body) => (enforcement, deadline) => enforcement.onEnd(body as EndRequest, { deadline }),
};

/** The paths, for the metrics. */
export const BLAZAR_PATHS = Object.keys(ENDPOINTS).flatMap((name) => [`/${name}`, `/v1/${name}`]);

export function blazarRoutes(tokens: AcceptedTokens, keepers: DecisionKeepers): Router {
  const router = new Router();
  for (const [name, asking] of Object.entries(ENDPOINTS)) {
    router.post(`{/v1}/${name}`, async (ctx) => {
      requireToken(ctx, tokens);
      const body = await jsonBody(ctx);
      // The chain checks that it is a request, before anything is kept of it.
      answer(ctx, await decide(ctx, body as DecidedRequest, asking(body), keepers));
    });
  }
  return router;
}

/** Of an end there is nothing to refuse. */
function answer(ctx: Context, decision: Decision | EndReport): void {
  if (decision.operation === 'end' || decision.allowed) {
    ctx.status = 204;
  } else {
    ctx.status = 403;
    ctx.body = { message: decision.message };
  }
}
