import { randomUUID } from 'node:crypto';
import type { Context } from 'koa';
import type { Generation } from './generation.ts';

/** What is known of a request from its first line on. */
export interface RequestState {
  /** The configuration that it has found, and is answered by. */
  readonly generation: Generation;
  /** The caller's, or ours: the same in the answer and in both logs. */
  readonly requestId: string;
  /** What the answer says besides: names and values by turns. */
  readonly headers: string[];
  /** A body in JSON that is to be sent with 200 and no further headers. */
  json?: string;
}

/** As OpenStack's middleware takes it for an id: `req-` and a UUID. Anything else would be the caller's text in our log. */
const REQUEST_ID = /^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
export const REQUEST_ID_HEADER = 'X-Openstack-Request-Id';

export function stateOf(ctx: Context): RequestState {
  return ctx.state as RequestState;
}

export function requestIdOf(ctx: Context): string {
  const sent = ctx.req.headers['x-openstack-request-id'];
  return typeof sent === 'string' && REQUEST_ID.test(sent) ? sent : `req-${randomUUID()}`;
}
