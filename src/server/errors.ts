import { randomUUID } from 'node:crypto';
import { HttpError, type Middleware } from 'koa';
import { InvalidRequestError } from '../errors.ts';
import type { Logger } from '../logger.ts';

/**
 * The one place that catches. Whoever asks is told what was wrong with the request; of a fault of ours they get an id,
 * under which the log has the rest.
 */
export function answerErrors(logger: Logger): Middleware {
  return async (ctx, next) => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body === undefined) {
        ctx.throw(
          404,
          `there is nothing at ${ctx.path}; leases are judged at /check-create, /check-update and /on-end`,
        );
      }
      if (ctx.status === 405 || ctx.status === 501) {
        const { status } = ctx;
        ctx.body = { message: `${ctx.method} is not possible here` };
        ctx.status = status;
      }
    } catch (thrown) {
      if (thrown instanceof InvalidRequestError) {
        ctx.status = 400;
        ctx.body = { message: thrown.message, field: thrown.field };
      } else if (thrown instanceof HttpError && thrown.expose) {
        ctx.status = thrown.status;
        ctx.body = { message: thrown.message };
      } else {
        const request_id = `req-${randomUUID()}`;
        const cause =
          thrown instanceof Error
            ? { error: thrown.message, stack: thrown.stack }
            : { error: String(thrown) };
        logger.error({ request_id, method: ctx.method, path: ctx.path, ...cause }, 'request failed');
        ctx.status = 500;
        ctx.body = { request_id };
      }
      // What is left of a body that nobody reads must not become the next request on this connection.
      if (!ctx.req.complete) {
        ctx.set('Connection', 'close');
      }
    }
  };
}
