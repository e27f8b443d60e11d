/**
 * A span per request, from its headers to the last byte of the response. Source: OpenTelemetry's semantic
 * conventions for HTTP server spans. Only paths of the service are shown: others are chosen by clients, and
 * may hold a token.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Attributes } from '@opentelemetry/api';
import { callersContext } from '../base/trace-context.ts';
import {
  activeSpan,
  endSpan,
  openSpan,
  type SpanOutcome,
  shownAttribute,
  type Tracing,
  tracing,
  within,
  withSpan,
} from '../base/tracing.ts';

/** Others are `_OTHER`. */
const KNOWN_METHODS: ReadonlySet<string> = new Set([
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'TRACE',
]);
const UNSHOWN_PATH = 'REDACTED';

type ClientOf = (request: IncomingMessage) => string | undefined;

/** The listener itself if no SDK is registered. `paths`: paths that may be shown. */
export function tracedRequests(
  listener: RequestListener,
  paths: ReadonlySet<string>,
  clientOf: ClientOf,
): RequestListener {
  const listening = tracing();
  if (listening === undefined) {
    return listener;
  }
  return (request, response) => {
    const span = startSpan(listening, request, response, paths, clientOf);
    if (span === undefined) {
      listener(request, response);
    } else {
      within(listening, span, () => listener(request, response));
    }
  };
}

/** The context of a new span until the response. No parent: the active span may be the previous request. */
function startSpan(
  listening: Tracing,
  request: IncomingMessage,
  response: ServerResponse,
  paths: ReadonlySet<string>,
  clientOf: ClientOf,
) {
  const { api } = listening;
  try {
    const caller = callersContext(listening, request.headers);
    const [path = ''] = (request.url ?? '').split('?', 1);
    const route = paths.has(path) ? path : undefined;
    const span = openSpan(
      listening,
      spanName(request, route),
      { kind: api.SpanKind.SERVER, attributes: { ...requestFacts(request, clientOf), ...routeFacts(route) } },
      caller,
    );
    response.once('close', () => endSpan(listening, span, () => outcomeOf(response)));
    return api.trace.setSpan(caller, span);
  } catch {
    return undefined;
  }
}

/** Sets the path as in the metrics, once it is known; `other` = not shown. */
export function nameRequestSpan(request: IncomingMessage, named: string): void {
  const route = named === 'other' ? undefined : named;
  withSpan(activeSpan(), (span) => {
    span.updateName(spanName(request, route));
    span.setAttributes(routeFacts(route));
  });
}

/** The id of the request in logs and responses. */
export function identifyRequestSpan(header: string, requestId: string): void {
  const name = `http.response.header.${header.toLowerCase()}`;
  withSpan(activeSpan(), (span) => span.setAttribute(name, [requestId]));
}

function spanName(request: IncomingMessage, route: string | undefined): string {
  const method = methodOf(request);
  const shown = method === '_OTHER' ? 'HTTP' : method;
  return route === undefined ? shown : `${shown} ${route}`;
}

function methodOf({ method = '' }: IncomingMessage): string {
  return KNOWN_METHODS.has(method) ? method : '_OTHER';
}

function requestFacts(request: IncomingMessage, clientOf: ClientOf): Attributes {
  const { headers, socket, httpVersion } = request;
  const client = clientOf(request);
  const port = client === socket.remoteAddress ? socket.remotePort : undefined;
  const agent = headers['user-agent'];
  return {
    'http.request.method': methodOf(request),
    'url.scheme': 'encrypted' in socket ? 'https' : 'http',
    'network.protocol.version': httpVersion,
    ...(client !== undefined && { 'client.address': client }),
    ...(port !== undefined && { 'client.port': port }),
    ...(agent !== undefined && { 'user_agent.original': shownAttribute(agent) }),
  };
}

function routeFacts(route: string | undefined): Attributes {
  return route === undefined ? { 'url.path': UNSHOWN_PATH } : { 'url.path': route, 'http.route': route };
}

function outcomeOf(response: ServerResponse): SpanOutcome {
  if (!response.headersSent) {
    return { errorType: 'aborted' };
  }
  const { statusCode } = response;
  const attributes = { 'http.response.status_code': statusCode };
  // Refusals are not errors of the service.
  const errorType =
    statusCode >= 500 ? String(statusCode) : response.writableFinished ? undefined : 'aborted';
  return { attributes, errorType };
}
