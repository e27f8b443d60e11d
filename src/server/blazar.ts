/**
 * Blazar's external-service protocol: what comes in is judged by the chain, 204 is yes, 403 is no with a reason.
 * Source: Blazar docs, "Usage Enforcement", ExternalServiceFilter; the commits are those of StackHPC's fork.
 */
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import type { Decision, EndReport } from '../filter/verdict.ts';
import type { CreateRequest, EndRequest, UpdateRequest } from '../lease/lease.ts';
import { jsonBody } from './body.ts';
import { type Ask, type DecidedRequest, type DecisionKeepers, decide } from './deciding.ts';
import type { Door } from './doors.ts';
import { EXACT } from './own-paths.ts';

/** Under `/` and `/v1`. */
const ENDPOINTS: Readonly<Record<string, (body: unknown, key: string | undefined) => Ask>> = {
  'check-create': (body, idempotencyKey) => (enforcement, call) =>
    enforcement.checkCreate(body as CreateRequest, { ...call, idempotencyKey }),
  'check-update': (body) => (enforcement, call) => enforcement.checkUpdate(body as UpdateRequest, call),
  'commit-create': (body, idempotencyKey) => (enforcement, call) =>
    enforcement.commitCreate(body as CreateRequest, { ...call, idempotencyKey }),
  'commit-update': (body) => (enforcement, call) => enforcement.commitUpdate(body as UpdateRequest, call),
  'on-end': (body) => (enforcement, call) => enforcement.onEnd(body as EndRequest, call),
};

/** Answers a request at one of the paths. */
export type Endpoint = (ctx: Context) => Promise<void>;

export function blazarEndpoints(door: Door, keepers: DecisionKeepers): ReadonlyMap<string, Endpoint> {
  return new Map(
    Object.entries(ENDPOINTS).flatMap(([name, asking]) => {
      const endpoint: Endpoint = async (ctx) => {
        door.requireProof(ctx);
        const body = await jsonBody(ctx);
        // The chain checks that it is a request, before anything is kept of it.
        answer(ctx, await decide(ctx, body as DecidedRequest, asking(body, idempotencyKeyOf(ctx)), keepers));
      };
      return [
        [`/${name}`, endpoint],
        [`/v1/${name}`, endpoint],
      ];
    }),
  );
}

export function blazarRoutes(endpoints: ReadonlyMap<string, Endpoint>): Router {
  const router = new Router(EXACT);
  for (const [path, endpoint] of endpoints) {
    router.post(path, endpoint);
  }
  return router;
}

/**
 * In front of the router, for the paths as everyone writes them: finding its way and putting middleware together costs the
 * router as much as the decision costs the filters.
 */
export function straightTo(endpoints: ReadonlyMap<string, Endpoint>): Middleware {
  return (ctx, next) => {
    const endpoint = ctx.req.method === 'POST' ? endpoints.get(ctx.req.url ?? '') : undefined;
    return endpoint === undefined ? next() : endpoint(ctx);
  };
}

/** The draft of the IETF writes it in quotes, and most clients without. Sent twice, it comes in one piece that is no key. */
function idempotencyKeyOf(ctx: Context): string | undefined {
  const sent = ctx.req.headers['idempotency-key'];
  const text = Array.isArray(sent) ? sent.join(', ') : sent;
  return text === undefined ? undefined : (/^"([^"\\]*)"$/.exec(text)?.[1] ?? text);
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
