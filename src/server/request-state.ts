/** The start and the end of every request: id, configuration, error responses, metrics and log. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { HttpError } from 'http-errors';
import type { Context } from 'koa';
import { OverloadedError } from '../base/concurrency-limiter.ts';
import { errorText, InvalidRequestError, LedgerUnavailableError, stackOf } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { isTraced } from '../base/tracing.ts';
import { CursorError } from '../ledger/reports/pages.ts';
import { ApiError, RETRY_AFTER } from './api/route.ts';
import type { Generation } from './configuration/generation.ts';
import type { Metrics } from './metrics/metrics.ts';
import { identifyRequestSpan, nameRequestSpan } from './traced-requests.ts';

export interface RequestState {
  /** The configuration when the request arrived; it serves the request. */
  readonly generation: Generation;
  /** The client's id, or ours. The response and both logs have the same. */
  readonly requestId: string;
  /** The client's address, for limits and logs. */
  readonly address: string | undefined;
  /** Additional response headers: alternating names and values. */
  readonly headers: string[];
  /** A JSON body to send with status 200 and no further headers. */
  json: string | undefined;
  /** The path pattern of API or console, such as `/v1/projects/{project_id}`, for metrics and logs. */
  route: string | undefined;
  /** Why the request was refused without a decision, for the log. */
  refusedFor: string | undefined;
}

export interface RequestParts {
  readonly generations: { readonly current: Generation };
  /** Fires when the service begins to stop. Default: never. */
  readonly stopping?: AbortSignal;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** A response, without the headers of all responses. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. Default: no body. */
  readonly body?: {
    readonly message?: string | null;
    readonly field?: string;
    readonly request_id?: string;
  };
}

/** The format of ids in OpenStack: `req-` and a UUID. Other texts of clients must not get into the log. */
const REQUEST_ID = /^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
export const REQUEST_ID_HEADER = 'X-Openstack-Request-Id';
/** In seconds. Decisions take microseconds, so there is room again soon. */
const RETRY_SOON = '1';
/** For the API: Blazar and the console show their users texts of their own. */
const FAULT = 'this is a fault of the service; its log has the cause under the request_id';

export function stateOf(ctx: Context): RequestState {
  return ctx.state as RequestState;
}

/** In bytes. */
export function bodyLimit(ctx: Context): number {
  return stateOf(ctx).generation.options.body_limit;
}

/** Call `generation.leave` once for each call. */
export function beginRequest(request: IncomingMessage, { generations }: RequestParts): RequestState {
  const generation = generations.current;
  const requestId = requestIdOf(request);
  if (isTraced()) {
    identifyRequestSpan(REQUEST_ID_HEADER, requestId);
  }
  // Browsers must not run any response as a script because of its content.
  const headers = [REQUEST_ID_HEADER, requestId, 'X-Content-Type-Options', 'nosniff'];
  const address = generation.clientOf(request);
  // Last: if something above throws, the request has not entered.
  generation.enter();
  return {
    generation,
    requestId,
    address,
    headers,
    json: undefined,
    route: undefined,
    refusedFor: undefined,
  };
}

/**
 * The response to an error, which the console shows as a page. Clients see what is wrong with their request.
 * For a fault of the service they get an id, under which the cause is logged. `path`: for the log.
 */
export function errorAnswer(
  thrown: unknown,
  state: RequestState,
  { method = '' }: IncomingMessage,
  path: string,
  { metrics, logger }: RequestParts,
): Answer {
  if (thrown instanceof OverloadedError) {
    metrics.overloadRefusals.inc();
    return { status: 503, headers: { 'Retry-After': RETRY_SOON }, body: { message: thrown.message } };
  }
  if (thrown instanceof InvalidRequestError) {
    state.refusedFor = reasonWithoutValue(thrown);
    return { status: 400, body: { message: thrown.message, field: thrown.field } };
  }
  const known = apiError(thrown);
  if (known !== undefined) {
    const { status, headers, message, field, cause } = known;
    if (cause !== undefined) {
      logger.warn({ request_id: state.requestId, error: errorText(cause) }, 'a request of a user failed');
    }
    return { status, headers, body: { message, ...(field !== undefined && { field }) } };
  }
  if (thrown instanceof HttpError && thrown.expose) {
    const { status, headers = {}, message } = thrown;
    if (status !== 404 && (status < 500 || status === 503)) {
      state.refusedFor = reasonWithoutValue(thrown);
    }
    return { status, headers, body: { message } };
  }
  const { requestId: request_id, route } = state;
  const cause = { error: errorText(thrown), stack: stackOf(thrown) };
  logger.error({ request_id, method, path, ...cause }, 'request failed');
  return { status: 500, body: { ...(route?.startsWith('/v1/') && { message: FAULT }), request_id } };
}

function apiError(thrown: unknown): ApiError | undefined {
  if (thrown instanceof CursorError) {
    return new ApiError(400, thrown.message, { field: 'after' });
  }
  if (thrown instanceof LedgerUnavailableError) {
    const message = 'the ledger does not answer; please try again';
    return new ApiError(503, message, { headers: RETRY_AFTER, cause: thrown });
  }
  return thrown instanceof ApiError ? thrown : undefined;
}

/** Counts the response, and logs refusals without a decision. Call it before sending. `path`: for logs. */
export function endRequest(
  state: RequestState,
  request: IncomingMessage,
  status: number,
  path: string,
  { stopping, metrics, logger }: RequestParts,
): void {
  // The rest of an unread body must not be parsed as the next request of this connection.
  if (!request.complete || stopping?.aborted === true) {
    state.headers.push('Connection', 'close');
  }
  metrics.requests.answered(path, status);
  if (isTraced()) {
    nameRequestSpan(request, path);
  }
  if (state.refusedFor !== undefined) {
    const { method = '' } = request;
    const { requestId: request_id, address, refusedFor: reason } = state;
    logRefused(logger, { status, method, path, address, request_id, reason });
  }
}

function requestIdOf({ headers }: IncomingMessage): string {
  const sent = headers['x-openstack-request-id'];
  return typeof sent === 'string' && REQUEST_ID.test(sent) ? sent : `req-${randomUUID()}`;
}

/** What was expected, without the value that the client sent. */
function reasonWithoutValue(thrown: unknown): string {
  return errorText(thrown).replace(/,? got ".*$/s, '');
}

/** A request refused without a decision: a wrong token, an invalid body. */
export interface RefusedRequest {
  readonly status: number;
  readonly method: string;
  /** A path of the service, or `other`: any other text may hold a token. */
  readonly path: string;
  readonly address: string | undefined;
  readonly request_id?: string;
  /** Without text from the client. */
  readonly reason: string;
}

const MAX_REASON = 300;

export function logRefused(logger: Logger, request: RefusedRequest): void {
  logger.warn({ ...request, reason: request.reason.slice(0, MAX_REASON) }, 'request refused');
}
