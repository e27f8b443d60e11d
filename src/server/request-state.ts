import { randomUUID } from 'node:crypto';
import type { Context } from 'koa';
import type { Generation } from './generation.ts';

/** What belongs to one request. */
export interface RequestState {
  /** The configuration at the time when the request arrived; it answers the request. */
  readonly generation: Generation;
  /** The client's id, or ours. The answer and both logs have the same. */
  readonly requestId: string;
  /** Additional headers of the answer: names and values by turns. */
  readonly headers: string[];
  /** A JSON body to send with status 200 and no further headers. */
  json?: string;
  /** The path as the API or the console describes it, such as `/v1/projects/{project_id}`, for metrics and logs. */
  route?: string;
  /** Why the request was not judged, for the log. */
  refusedFor?: string;
}

/** The form of an id in OpenStack: `req-` and a UUID. Anything else would be the client's text in our log. */
const REQUEST_ID = /^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
export const REQUEST_ID_HEADER = 'X-Openstack-Request-Id';

export function stateOf(ctx: Context): RequestState {
  return ctx.state as RequestState;
}

export function requestIdOf(ctx: Context): string {
  const sent = ctx.req.headers['x-openstack-request-id'];
  return typeof sent === 'string' && REQUEST_ID.test(sent) ? sent : `req-${randomUUID()}`;
}
