/** Errors of the API: problem details (RFC 9457), whichever part of the service answers. */
import { STATUS_CODES } from 'node:http';
import type { Context } from 'koa';
import { pathOf } from '../own-paths.ts';

export const PROBLEM_TYPE = 'application/problem+json';

/** An error body with the members of RFC 9457 added. */
export function problemOf(status: number, body: object): object {
  const title = STATUS_CODES[status] ?? '';
  return { ...body, type: 'about:blank', title, status, ...('message' in body && { detail: body.message }) };
}

/**
 * Turns an error of the API into a problem. Blazar's protocol is served elsewhere and has its own errors. The
 * content type stays JSON unless the client accepts the other: the command and other clients of 1.0 read only
 * JSON.
 */
export function answerProblem(ctx: Context): void {
  const { status, body } = ctx;
  // Koa sends texts and streams as such.
  const isRecord = Object.getPrototypeOf(body ?? '') === Object.prototype;
  if (status < 400 || !pathOf(ctx.req).startsWith('/v1/') || !isRecord) {
    return;
  }
  ctx.body = problemOf(status, body as object);
  if (/(?:^|[\s,])application\/problem\+json(?=$|[\s,;])/i.test(ctx.get('Accept'))) {
    ctx.type = PROBLEM_TYPE;
  }
}
