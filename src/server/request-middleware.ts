/** Around every request that Koa answers. */
import type { Context, Middleware } from 'koa';
import type { Generation } from './configuration/generation.ts';
import { kubernetesPathOf, pathOf } from './own-paths.ts';
import { servesSkypilot } from './protocols/skypilot.ts';
import { beginRequest, endRequest, errorAnswer, type RequestParts, stateOf } from './request-state.ts';

/** `paths`: those that are counted by name. */
export function aroundRequests(parts: RequestParts, paths: ReadonlySet<string>): Middleware {
  return async (ctx, next) => {
    const state = beginRequest(ctx.req, parts);
    ctx.state = state;
    ctx.request.ip = state.address ?? '';
    try {
      await next();
      answerUnknown(ctx);
    } catch (thrown) {
      const answer = errorAnswer(thrown, state, ctx.req, namedPath(ctx, state.generation), parts);
      ctx.status = answer.status;
      ctx.set({ ...answer.headers });
      ctx.body = answer.body;
    } finally {
      state.generation.leave();
    }
    endRequest(state, ctx.req, ctx.status, namedPath(ctx, state.generation), parts);
    send(ctx, state.headers);
  };

  /** The path for metrics and logs. Any other path is the client's text, and may hold a token. */
  function namedPath(ctx: Context, { skypilot, kubernetes }: Generation): string {
    // Not `ctx.path`, which throws where a target is no URL.
    const path = pathOf(ctx.req);
    const { route } = stateOf(ctx);
    if (route !== undefined) {
      return route;
    }
    if (paths.has(path)) {
      return path;
    }
    if (servesSkypilot(skypilot, path)) {
      return skypilot.options.path;
    }
    return (kubernetes && kubernetesPathOf(path)?.path) ?? 'other';
  }
}

/** Koa sends most answers. That of a review is sent here, since setting headers one by one costs most. */
function send(ctx: Context, headers: readonly string[]): void {
  const { json } = stateOf(ctx);
  if (json !== undefined && ctx.writable && ctx.res.getHeaderNames().length === 0) {
    const length = String(Buffer.byteLength(json));
    const all = [...headers, 'Content-Type', 'application/json; charset=utf-8', 'Content-Length', length];
    ctx.respond = false;
    ctx.res.writeHead(200, all).end(json);
    return;
  }
  for (let index = 0; index < headers.length; index += 2) {
    ctx.set(headers[index] ?? '', headers[index + 1] ?? '');
  }
}

function answerUnknown(ctx: Context): void {
  if (ctx.status === 404 && ctx.body === undefined) {
    // Without the path: a mistyped path may hold a token, and clients show errors to their users.
    ctx.throw(
      404,
      'there is nothing at this path; leases are judged at /check-create, /check-update and /on-end',
    );
  }
  if (ctx.status === 405 || ctx.status === 501) {
    const { status } = ctx;
    ctx.body = { message: `${ctx.method} is not possible here` };
    ctx.status = status;
  }
}
