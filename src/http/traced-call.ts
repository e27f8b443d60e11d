/**
 * A span for each outgoing call, from its first try to its last, and the header that makes the service part of the trace. Source:
 * OpenTelemetry's semantic conventions for HTTP client spans. Addresses are shown without credentials and query.
 */
import { traceHeaders } from '../trace-context.ts';
import { inSpan, type SpanOutcome } from '../tracing.ts';
import { HttpCallError } from './call-error.ts';
import type { HttpAnswer } from './contract.ts';

export interface TracedCall {
  readonly method: 'GET' | 'POST';
  /** As the caller gave it, so perhaps no URL at all. */
  readonly address: string;
  /** Whether the path is a secret. */
  readonly hidesPath: boolean;
}

/** `call`: makes the call, with these headers in addition. */
export function tracedCall(
  { method, address, hidesPath }: TracedCall,
  call: (headers: Readonly<Record<string, string>>) => Promise<HttpAnswer>,
): Promise<HttpAnswer> {
  if (!URL.canParse(address)) {
    return call({});
  }
  const { protocol, origin, hostname, pathname, port } = new URL(address);
  const defaultPort = protocol === 'https:' ? 443 : 80;
  return inSpan(
    {
      name: method,
      kind: 'client',
      attributes: {
        'http.request.method': method,
        'server.address': hostname,
        'server.port': port === '' ? defaultPort : Number(port),
        'url.full': `${origin}${hidesPath ? '/REDACTED' : pathname}`,
      },
    },
    () => call(traceHeaders()).catch(withCode),
    outcomeOf,
  ).then((answer) => {
    if (answer instanceof HttpCallError) {
      throw answer;
    }
    return answer;
  });
}

/** Errors of calls are told by their codes, not by their class. */
function withCode(thrown: unknown): HttpCallError {
  if (thrown instanceof HttpCallError) {
    return thrown;
  }
  throw thrown;
}

function outcomeOf(answer: HttpAnswer | HttpCallError): SpanOutcome {
  if (answer instanceof HttpCallError) {
    return { errorType: answer.code };
  }
  const { status } = answer;
  return {
    attributes: { 'http.response.status_code': status },
    errorType: status >= 400 ? String(status) : undefined,
  };
}
