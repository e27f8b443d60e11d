/** Around every request: what it is answered by, its id, and whatever goes wrong with it. */
import { type Context, HttpError, type Middleware } from 'koa';
import { InvalidRequestError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { OverloadedError } from '../waiting-line.ts';
import type { Generation } from './generation.ts';
import type { Metrics } from './metrics.ts';
import { kubernetesPathOf } from './own-paths.ts';
import { REQUEST_ID_HEADER, type RequestState, requestIdOf, stateOf } from './request-state.ts';
import { servesSkypilot } from './skypilot.ts';

export interface RequestParts {
  readonly current: () => Generation;
  readonly isDraining: () => boolean;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** The paths that are counted by name. */
  readonly paths: ReadonlySet<string>;
}

/** In seconds: a decision takes microseconds, so soon there is room again. */
const RETRY_AFTER = '1';

export function aroundRequests({ current, isDraining, metrics, logger, paths }: RequestParts): Middleware {
  return async (ctx, next) => {
    const generation = current();
    const requestId = requestIdOf(ctx);
    const headers = [REQUEST_ID_HEADER, requestId];
    const state: RequestState = { generation, requestId, headers };
    ctx.state = state;
    generation.enter();
    try {
      await next();
      answerUnknown(ctx);
    } catch (thrown) {
      answerError(ctx, thrown, namedPath(ctx, generation), logger);
      if (thrown instanceof OverloadedError) {
        metrics.refusedForOverload();
      }
    } finally {
      generation.leave();
    }
    // What is left of a body that nobody reads must not become the next request on this connection.
    if (!ctx.req.complete || isDraining()) {
      headers.push('Connection', 'close');
    }
    metrics.answered(namedPath(ctx, generation), ctx.status);
    send(ctx, headers);
  };

  /** What may be counted, and logged: another path may be anything, and hold a token. */
  function namedPath({ path }: Context, { skypilot, kubernetes }: Generation): string {
    if (paths.has(path)) {
      return path;
    }
    if (servesSkypilot(skypilot, path)) {
      return skypilot.options.path;
    }
    return (kubernetes && kubernetesPathOf(path)?.path) ?? 'other';
  }
}

/** Koa sends the answer. What every other request gets is sent from here: headers that are set one by one cost most. */
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
    // Without the path: a token may stand in one that was mistyped, and clients show errors to their users.
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

/** Whoever asks is told what was wrong with the request; of a fault of ours they get an id, under which the log has the rest. */
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
    ctx.body = { message: thrown.message };
  } else {
    const { requestId: request_id } = stateOf(ctx);
    const cause =
      thrown instanceof Error ? { error: thrown.message, stack: thrown.stack } : { error: String(thrown) };
    logger.error({ request_id, method: ctx.method, path, ...cause }, 'request failed');
    ctx.status = 500;
    ctx.body = { request_id };
  }
}
