/** Errors of the API, which are problem details of RFC 9457, whatever part of the service answers them. */
import { STATUS_CODES } from 'node:http';
import type { Context } from 'koa';
import { pathOf } from '../own-paths.ts';

export const PROBLEM_TYPE = 'application/problem+json';

/** The body of an error with the members that RFC 9457 gives all of them. */
export function problemOf(status: number, body: object): object {
  const title = STATUS_CODES[status] ?? '';
  return { ...body, type: 'about:blank', title, status, ...('message' in body && { detail: body.message }) };
}

/**
 * Makes an answer a problem if it is an error of the API. Blazar's protocol is answered elsewhere, and has errors of its own. The type of
 * the content is JSON as before, unless the client names the other: the command and other clients of 1.0 read only JSON.
 */
export function answerProblem(ctx: Context): void {
  const { status, body } = ctx;
  if (status < 400 || !pathOf(ctx.req).startsWith('/v1/') || !isRecord(body)) {
    return;
  }
  ctx.body = problemOf(status, body);
  if (/(?:^|[\s,])application\/problem\+json(?=$|[\s,;])/i.test(ctx.get('Accept'))) {
    ctx.type = PROBLEM_TYPE;
  }
}

/** Neither a text nor a stream, which Koa would send as such. */
function isRecord(body: unknown): body is object {
  return typeof body === 'object' && body !== null && Object.getPrototypeOf(body) === Object.prototype;
}
