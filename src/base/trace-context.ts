/**
 * W3C Trace Context: the trace of a request, and the spans of outgoing calls that become part of it. Baggage
 * is neither read nor forwarded: it is text from the client. Sources: https://www.w3.org/TR/trace-context/,
 * and OpenTelemetry's semantic conventions for HTTP client spans.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Context, Span, SpanContext } from '@opentelemetry/api';
import { causeOf, codeOf } from './errors.ts';
import {
  activeSpan,
  errorTypeOf,
  inSpan,
  isSampled,
  isTraced,
  shownAttribute,
  type Tracing,
  withSpan,
} from './tracing.ts';

/** Version, trace, parent, flags. Later versions may append fields. Uppercase and all zero are invalid. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED = 1;
/** Longer ones are ignored, as the specification allows. */
const MAX_TRACEPARENT = 255;
const MAX_TRACESTATE = 512;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;
const TRACE_ID = /^[0-9a-f]{32}$/;

/** The context of the caller; the root if it sends none, an invalid one, or more than one header. */
export function callersContext({ api }: Tracing, headers: IncomingHttpHeaders): Context {
  const remote = remoteSpan(api, headers);
  return remote === undefined ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT, remote);
}

function remoteSpan(
  api: Tracing['api'],
  { traceparent, tracestate }: IncomingHttpHeaders,
): SpanContext | undefined {
  if (typeof traceparent !== 'string' || traceparent.length > MAX_TRACEPARENT) {
    return undefined;
  }
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || (version === '00' && more !== undefined)) {
    return undefined;
  }
  const state = typeof tracestate === 'string' && tracestate.length <= MAX_TRACESTATE ? tracestate : '';
  return {
    traceId,
    spanId,
    isRemote: true,
    traceFlags: Number.parseInt(flags ?? '00', 16) & SAMPLED,
    ...(state !== '' && { traceState: api.createTraceState(state) }),
  };
}

/** The headers that make a call part of the current trace, sampled or not. Empty if there is no trace. */
export function traceHeaders(): Readonly<Record<string, string>> {
  return withSpan(activeSpan(), headersOf) ?? {};
}

/** An SDK may return anything, and an invalid header would make the call fail. */
function headersOf(span: Span): Readonly<Record<string, string>> {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const traceparent = `00-${traceId}-${spanId}-${(traceFlags & SAMPLED) === SAMPLED ? '01' : '00'}`;
  if (!TRACEPARENT.test(traceparent)) {
    return {};
  }
  const tracestate = traceState?.serialize() ?? '';
  return { traceparent, ...(TRACESTATE.test(tracestate) && { tracestate }) };
}

/** Id of the current trace, for log lines. `undefined` = none, or not recorded. */
export function traceId(): string | undefined {
  return withSpan(activeSpan(), (span) => {
    const { traceId: id } = span.spanContext();
    return isSampled(span) && TRACE_ID.test(id) ? id : undefined;
  });
}

interface TracedCall {
  readonly method: string;
  /** As the caller passed it. If it is not a URL, there is no span. */
  readonly address: string;
  /** Whether the path is a secret. Default: false. */
  readonly hidesPath?: boolean | undefined;
}

const NO_HEADERS = {};
/** Codes of HttpCallError, undici and Node: `timeout`, `UND_ERR_SOCKET`, `ECONNREFUSED`. */
const CODE = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/**
 * A span for an outgoing call, from its first attempt to its last. Its address loses credentials and query.
 * `call`: makes the call, with these headers added. Without an SDK, only calls it.
 */
export function tracedCall<Answer>(
  { method, address, hidesPath = false }: TracedCall,
  call: (headers: Readonly<Record<string, string>>) => Promise<Answer>,
  statusOf: (answer: Answer) => number,
): Promise<Answer> {
  const url = isTraced() && URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined) {
    return call(NO_HEADERS);
  }
  const { protocol, origin, hostname, pathname, port } = url;
  const defaultPort = protocol === 'https:' ? 443 : 80;
  return inSpan(
    {
      name: method,
      kind: 'client',
      attributes: {
        'http.request.method': method,
        'server.address': hostname,
        'server.port': port === '' ? defaultPort : Number(port),
        'url.full': shownAttribute(`${origin}${hidesPath ? '/REDACTED' : pathname}`),
      },
    },
    () => call(traceHeaders()),
    (answer) => {
      const status = statusOf(answer);
      return {
        attributes: { 'http.response.status_code': status },
        errorType: status >= 400 ? String(status) : undefined,
      };
    },
    (thrown) => ({ errorType: failureOf(thrown) }),
  );
}

/** The code of a failure, or its class if it has no code. `fetch` has the code in the cause. */
function failureOf(thrown: unknown): string {
  return codeIn(thrown) ?? codeIn(causeOf(thrown)) ?? errorTypeOf(thrown);
}

function codeIn(thrown: unknown): string | undefined {
  const code = codeOf(thrown);
  return CODE.test(code) ? code : undefined;
}
