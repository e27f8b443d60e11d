/** A typed client of the API: its types are those of /openapi.json. */
import createFetchClient, { type Client } from 'openapi-fetch';
import type { paths } from './api-types.ts';
import { boundedFetch, EndpointError } from './bounded-fetch.ts';

export interface ApiClientOptions {
  /** The address of the service, such as `https://enforcement.example.org`. */
  readonly endpoint: string;
  /** Sent as `X-Auth-Token`. Default: none. */
  readonly token?: string | undefined;
  /** For each request, in seconds. Default: 60. */
  readonly timeout?: number | undefined;
  /** A longer answer is an error, in bytes. Default: 64 MiB. */
  readonly maxAnswerBytes?: number | undefined;
  /** PEM: the authorities to trust, instead of those that Node trusts. */
  readonly ca?: string | undefined;
}

export interface ApiClient {
  /** `api.GET('/v1/budgets', { params: { query: { limit: 50 } } })` */
  readonly api: Client<paths>;
  close(): Promise<void>;
}

/** @throws TypeError if the endpoint is no http or https URL, or has a user, a query or a fragment */
export function createApiClient({
  endpoint,
  token,
  timeout = 60,
  maxAnswerBytes = 67_108_864,
  ca,
}: ApiClientOptions): ApiClient {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    `${url.username}${url.password}${url.search}${url.hash}` !== ''
  ) {
    throw new TypeError('expected the address of a service, such as https://enforcement.example.org');
  }
  const bounded = boundedFetch({ timeout, maxAnswerBytes, ca });
  const fetch = async (request: Request) => {
    const answer = await bounded.fetch(request);
    return expected(answer, new URL(request.url).origin);
  };
  return {
    api: createFetchClient<paths>({
      baseUrl: `${url.origin}${url.pathname.replace(/\/+$/, '')}`,
      headers: token === undefined ? {} : { 'X-Auth-Token': token },
      fetch,
    }),
    close: () => bounded.close(),
  };
}

/** The answer, if it is one of a service and says that all is well. @throws EndpointError */
async function expected(answer: Response, origin: string): Promise<Response> {
  const { status } = answer;
  const [type = ''] = (answer.headers.get('Content-Type') ?? '').split(';');
  if (status === 204 || (status === 200 && type === 'text/csv')) {
    return answer;
  }
  const text = await answer.text();
  const body = type === 'application/json' ? parsed(text) : undefined;
  if (status >= 300 && status < 400) {
    throw new EndpointError(
      'failed',
      `${origin}: it redirects elsewhere; give the address that it leads to`,
      {
        status,
      },
    );
  }
  if (status < 300 && body !== undefined) {
    return new Response(text, { status, headers: answer.headers });
  }
  const message = messageOf(body);
  if (status >= 500) {
    const after = /^\d{1,6}$/.exec(answer.headers.get('Retry-After') ?? '')?.[0];
    const again = after === undefined ? '' : ` (it asks to wait ${after} s)`;
    throw new EndpointError('failed', `${origin}: ${message ?? `it answered ${status}`}${again}`, { status });
  }
  if (message === undefined) {
    throw nonsense(origin, status);
  }
  throw new EndpointError('refused', message, { status, answer: body });
}

/** It is no service of this project, or another version of it. */
export function nonsense(origin: string, status: number): EndpointError {
  const message = `${origin}: it answered ${status}, but not as blazar-enforcement does; is this the address of the service?`;
  return new EndpointError('failed', message, { status });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const LONGEST_MESSAGE = 2000;

function messageOf(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('message' in body) || typeof body.message !== 'string') {
    return undefined;
  }
  return body.message.slice(0, LONGEST_MESSAGE);
}
