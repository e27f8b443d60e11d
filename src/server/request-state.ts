import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type { Decision, EndReport } from '../filter/verdict.ts';
import type { Generation } from './generation.ts';
import { identifyRequestSpan } from './traced-requests.ts';

/** What belongs to one request. */
export interface RequestState {
  /** The configuration at the time when the request arrived; it answers the request. */
  readonly generation: Generation;
  /** The client's id, or ours. The answer and both logs have the same. */
  readonly requestId: string;
  /** Additional headers of the answer: names and values by turns. */
  readonly headers: string[];
  /** A JSON body to send with status 200 and no further headers. */
  json: string | undefined;
  /** The path as the API or the console describes it, such as `/v1/projects/{project_id}`, for metrics and logs. */
  route: string | undefined;
  /** Why the request was not judged, for the log. */
  refusedFor: string | undefined;
  /** The body, if it is being read already. */
  body: Promise<Uint8Array> | undefined;
  /** The decision about a lease, if it is being made already. It must not be made twice. */
  judged: Promise<Decision | EndReport> | undefined;
}

/** The form of an id in OpenStack: `req-` and a UUID. Anything else would be the client's text in our log. */
const REQUEST_ID = /^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
export const REQUEST_ID_HEADER = 'X-Openstack-Request-Id';

export function stateOf(ctx: Context): RequestState {
  return ctx.state as RequestState;
}

/** Requests that were begun before Koa has seen them. */
const begun = new WeakMap<IncomingMessage, RequestState>();

/** Counts a request that begins. `generation`: the current one, which must then be left. */
export function beginRequest(request: IncomingMessage, generation: Generation): RequestState {
  const requestId = requestIdOf(request);
  generation.enter();
  identifyRequestSpan(REQUEST_ID_HEADER, requestId);
  // Whatever is answered, no browser may run it as a script because of what it looks like.
  return {
    generation,
    requestId,
    headers: [REQUEST_ID_HEADER, requestId, 'X-Content-Type-Options', 'nosniff'],
    json: undefined,
    route: undefined,
    refusedFor: undefined,
    body: undefined,
    judged: undefined,
  };
}

/** Leaves a request that was begun to Koa. */
export function handOver(request: IncomingMessage, state: RequestState): void {
  begun.set(request, state);
}

/** The state of a request that Koa was left; `undefined` = Koa is the first to see it. */
export function handedOver(request: IncomingMessage): RequestState | undefined {
  return begun.get(request);
}

function requestIdOf({ headers }: IncomingMessage): string {
  const sent = headers['x-openstack-request-id'];
  return typeof sent === 'string' && REQUEST_ID.test(sent) ? sent : `req-${randomUUID()}`;
}
