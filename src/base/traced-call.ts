/**
 * A span per outgoing call, from its first attempt to its last, and the header that makes the service part of
 * the trace. Source: OpenTelemetry's semantic conventions for HTTP client spans. Addresses lose credentials
 * and query.
 */
import { traceHeaders } from './trace-context.ts';
import { errorTypeOf, inSpan, isTraced, shownAttribute } from './tracing.ts';

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

/** `call`: makes the call, with these headers added. Without an SDK, only calls it. */
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
  return codeIn(thrown) ?? codeIn(thrown instanceof Error ? thrown.cause : undefined) ?? errorTypeOf(thrown);
}

function codeIn(thrown: unknown): string | undefined {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
  return typeof code === 'string' && CODE.test(code) ? code : undefined;
}
