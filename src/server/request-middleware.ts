/** Around every request: its id, its configuration, the answer to every error, and the metrics. */
import { type Context, HttpError, type Middleware } from 'koa';
import { errorText, InvalidRequestError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { OverloadedError } from '../waiting-line.ts';
import type { Generation } from './generation.ts';
import type { Metrics } from './metrics/metrics.ts';
import { kubernetesPathOf } from './own-paths.ts';
import type { RefusedRequests } from './refused-requests.ts';
import { beginRequest, handedOver, stateOf } from './request-state.ts';
import { servesSkypilot } from './skypilot.ts';
import { nameRequestSpan } from './traced-requests.ts';

export interface RequestParts {
  readonly current: () => Generation;
  readonly isDraining: () => boolean;
  readonly metrics: Metrics;
  readonly refusedRequests: RefusedRequests;
  readonly logger: Logger;
  /** The paths that are counted by name. */
  readonly paths: ReadonlySet<string>;
}

/** In seconds. A decision takes microseconds, so there is room again soon. */
const RETRY_AFTER = '1';
/** For people: Blazar shows its users a text of its own. */
const FAULT = 'this is a fault of the service; its log has the cause under the request_id';

export function aroundRequests(parts: RequestParts): Middleware {
  const { current, isDraining, metrics, refusedRequests, logger, paths } = parts;
  return async (ctx, next) => {
    const state = handedOver(ctx.req) ?? beginRequest(ctx.req, current());
    const { generation, requestId, headers } = state;
    ctx.state = state;
    ctx.request.ip = generation.proxies.clientOf(ctx.req) ?? '';
    try {
      await next();
      answerUnknown(ctx);
    } catch (thrown) {
      answerError(ctx, thrown, namedPath(ctx, generation), logger);
      if (thrown instanceof OverloadedError) {
        metrics.refusedForOverload();
      } else if (ctx.status !== 404 && (ctx.status < 500 || ctx.status === 503)) {
        state.refusedFor = reasonWithoutValue(thrown);
      }
    } finally {
      generation.leave();
    }
    // The rest of a body that was not read must not become the next request on this connection.
    if (!ctx.req.complete || isDraining()) {
      headers.push('Connection', 'close');
    }
    const path = namedPath(ctx, generation);
    metrics.answered(path, ctx.status);
    nameRequestSpan(ctx.req, path);
    if (state.refusedFor !== undefined) {
      const { status, method, ip: address } = ctx;
      refusedRequests.log({ status, method, path, address, request_id: requestId, reason: state.refusedFor });
    }
    send(ctx, headers);
  };

  /** The path for metrics and logs. Any other path is the client's text, and may hold a token. */
  function namedPath(ctx: Context, { skypilot, kubernetes }: Generation): string {
    const { path } = ctx;
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

/** Koa sends most answers. The two that nearly every request gets are sent here, since setting headers one by one costs most. */
function send(ctx: Context, headers: readonly string[]): void {
  const { json } = stateOf(ctx);
  const isPlain = ctx.writable && ctx.res.getHeaderNames().length === 0;
  if (ctx.status === 204 && isPlain) {
    ctx.respond = false;
    ctx.res.writeHead(204, headers as string[]).end();
    return;
  }
  if (json !== undefined && isPlain) {
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

/** Clients are told what is wrong with their request. For a fault of the service they get an id, under which the log has the cause. */
function answerError(ctx: Context, thrown: unknown, path: string, logger: Logger): void {
  if (thrown instanceof InvalidRequestError) {
    ctx.status = 400;
    ctx.body = { message: thrown.message, field: thrown.field };
  } else if (thrown instanceof OverloadedError) {
    ctx.status = 503;
    ctx.set('Retry-After', RETRY_AFTER);
    ctx.body = { message: thrown.message };
  } else if (thrown instanceof HttpError && thrown.expose) {
    ctx.status = thrown.status;
    ctx.set(thrown.headers ?? {});
    ctx.body = { message: thrown.message };
  } else {
    const { requestId: request_id, route } = stateOf(ctx);
    const cause =
      thrown instanceof Error ? { error: thrown.message, stack: thrown.stack } : { error: String(thrown) };
    logger.error({ request_id, method: ctx.method, path, ...cause }, 'request failed');
    ctx.status = 500;
    ctx.body = { ...(route !== undefined && { message: FAULT }), request_id };
  }
}

/** What was expected, without the text that the client sent instead. */
function reasonWithoutValue(thrown: unknown): string {
  return errorText(thrown).replace(/,? got ".*$/s, '');
}
