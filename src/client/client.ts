/** A typed client of the API, with the types of /openapi.json. */
import createFetchClient, {
  type Client,
  type ClientPathsWithMethod,
  defaultPathSerializer,
  type FetchResponse,
  type MaybeOptionalInit,
} from 'openapi-fetch';
import { errorText } from '../base/errors.ts';
import { jsonIn } from '../base/yaml/tree.ts';
import type { KeystoneErrorCode } from '../openstack/contract.ts';
import type { paths } from './api-types.ts';
import { boundedFetch, EndpointError, serviceUrl, textIn } from './bounded-fetch.ts';
import { allPages, type ListArguments, type ListPath, type Page } from './pages.ts';

export interface ApiClientOptions {
  /** The URL of the service, such as `https://enforcement.example.org`. */
  readonly endpoint: string;
  /** Sent as `X-Auth-Token`. Default: none. */
  readonly token?: string | undefined;
  /**
   * Instead of `token`: get tokens from Keystone, with the account of this cloud of clouds.yaml; `envvars` =
   * of the variables `OS_*`. Default: none.
   */
  readonly cloud?: string | undefined;
  /** Per request, in seconds, at most a day. Default: 60. */
  readonly timeout?: number | undefined;
  /** A longer answer is an error, in bytes. Default: 64 MiB. */
  readonly maxAnswerBytes?: number | undefined;
  /** PEM: trusted authorities, instead of Node's. */
  readonly ca?: string | undefined;
}

type Method = 'get' | 'post' | 'patch' | 'delete';

/**
 * `client.GET('/v1/projects/{project_id}', { params: { path: { project_id: 'climate' } } })`. Path,
 * parameters, body and `data` have the types of the API document; `data` is not validated at run time. With
 * `parseAs: 'text'`, `data` is a text, such as CSV. Rejects with `EndpointError`, or with the reason of
 * `signal`.
 */
export type ApiCall<Verb extends Method> = <
  Path extends ClientPathsWithMethod<Client<paths>, Verb>,
  Init extends MaybeOptionalInit<paths[Path], Verb>,
>(
  path: Path,
  ...init: undefined extends Init ? [Init?] : [Init]
) => Promise<
  // Error answers are thrown.
  Extract<FetchResponse<NonNullable<paths[Path][Verb]>, Init, `${string}/${string}`>, { error?: never }>
>;

export interface ApiClient {
  readonly GET: ApiCall<'get'>;
  readonly POST: ApiCall<'post'>;
  readonly PATCH: ApiCall<'patch'>;
  readonly DELETE: ApiCall<'delete'>;
  /** The pages of a list, each requested on demand. Throws as `GET`, and if a list has no end. */
  pages<Path extends ListPath>(path: Path, ...init: ListArguments<Path>): AsyncGenerator<Page<Path>>;
  /** Each item of a list, across its pages: `for await (const budget of client.items('/v1/budgets'))`. */
  items<Path extends ListPath>(
    path: Path,
    ...init: ListArguments<Path>
  ): AsyncGenerator<Page<Path>['items'][number]>;
  /** Closes the connections. */
  close(): Promise<void>;
}

/**
 * Sends no request before its first use. Follows no redirects and verifies certificates; each answer is
 * bounded in time and size.
 *
 * @throws TypeError if the endpoint is no http or https URL, or has a user, a query or a fragment; and for
 * other invalid options
 */
export function createApiClient({
  endpoint,
  token,
  cloud,
  timeout = 60,
  maxAnswerBytes = 67_108_864,
  ca,
}: ApiClientOptions): ApiClient {
  const url = serviceUrl(endpoint);
  if (url === undefined) {
    throw new TypeError('expected the address of a service, such as https://enforcement.example.org');
  }
  if (token !== undefined && cloud !== undefined) {
    throw new TypeError('expected a token or a cloud, got both');
  }
  if (cloud === '') {
    throw new TypeError('expected the name of a cloud');
  }
  if (token !== undefined && !isToken(token)) {
    throw new TypeError('expected a token: one line of ASCII without spaces');
  }
  if (!(timeout > 0 && timeout <= 86_400 && maxAnswerBytes > 0)) {
    throw new TypeError('expected a timeout of at most 86400 seconds and a limit for answers, both above 0');
  }
  const bounded = boundedFetch({ timeout, maxAnswerBytes, ca });
  let opened: Promise<Credentials> | undefined;
  const credentials = () => {
    opened ??= cloud === undefined ? undefined : keystoneTokens(cloud);
    return token === undefined ? opened : Promise.resolve(givenToken(token));
  };
  const { GET, POST, PATCH, DELETE } = createFetchClient<paths>({
    baseUrl: `${url.origin}${url.pathname.replace(/\/+$/, '')}`,
    pathSerializer: pathWith,
    fetch: async (request) => {
      const { answer, shown } = await proven(request, await credentials(), bounded.fetch);
      return expected(answer, new URL(request.url).origin, shown);
    },
  }) as unknown as Pick<ApiClient, 'GET' | 'POST' | 'PATCH' | 'DELETE'>;
  const pages = (path: ListPath, { path: inPath, query, signal }: AnyInit = {}) =>
    allPages(async (after) => {
      const params = { path: inPath, query: { ...query, ...(after !== undefined && { after }) } };
      return (await (GET as AnyGet)(path, { params, signal })).data;
    });
  return {
    GET,
    POST,
    PATCH,
    DELETE,
    pages: pages as ApiClient['pages'],
    items: async function* items(path: ListPath, init?: AnyInit) {
      for await (const page of pages(path, init)) {
        yield* page.items;
      }
    } as ApiClient['items'],
    close: async () => {
      await Promise.all([bounded.close(), opened?.then((one) => one.close())]);
    },
  };
}

/** URLs lose such a segment in any spelling: `/v1/projects/../decisions` would be the decisions of all projects. */
const UP = /^\.\.?$/;

/** @throws EndpointError */
function pathWith(path: string, params: Record<string, unknown>): string {
  const wrong = Object.entries(params).find(([, value]) => UP.test(String(value)));
  if (wrong !== undefined) {
    throw new EndpointError('refused', `${wrong[0]}: expected an id, got "${wrong[1]}"`);
  }
  return defaultPathSerializer(path, params);
}

/** Only the caller knows the type of the list. */
interface AnyInit {
  readonly path?: object;
  readonly query?: object;
  readonly signal?: AbortSignal;
}
type AnyGet = (path: string, init: object) => Promise<{ readonly data?: unknown }>;

/** A valid header value, in a length that servers accept. */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]{1,16384}$/.test(text);
}

/** Sends a request with a token. After a 401, which was not processed, repeats it once if there is a newer token. */
async function proven(
  request: Request,
  credentials: Credentials | undefined,
  fetch: (request: Request) => Promise<Response>,
): Promise<{ answer: Response; shown?: string }> {
  if (credentials === undefined) {
    return { answer: await fetch(request) };
  }
  const attempt = async (shown: string) => {
    const again = request.clone();
    again.headers.set('X-Auth-Token', shown);
    return { answer: await fetch(again), shown };
  };
  const first = await credentials.token(request.signal);
  const told = await attempt(first);
  if (told.answer.status !== 401 || !credentials.refused(first)) {
    return told;
  }
  const second = await credentials.token(request.signal);
  return second === first ? told : attempt(second);
}

const JSON_TYPES = ['application/json', 'application/problem+json'];

/** The answer, if it is a service's and a success. `token`: hidden in messages. @throws EndpointError */
async function expected(answer: Response, origin: string, token: string | undefined): Promise<Response> {
  const { status } = answer;
  const [type = ''] = (answer.headers.get('Content-Type') ?? '').split(';');
  if (status === 204 || (status === 200 && type === 'text/csv')) {
    return answer;
  }
  const text = await answer.text();
  const body = JSON_TYPES.includes(type) ? jsonIn(text) : undefined;
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
  const message = messageOf(body, token);
  const after = /^\d{1,6}$/.exec(answer.headers.get('Retry-After') ?? '')?.[0];
  const facts = { status, answer: body, retryAfter: after === undefined ? undefined : Number(after) };
  if (status >= 500) {
    const again = after === undefined ? '' : ` (it asks to wait ${after} s)`;
    throw new EndpointError('failed', `${origin}: ${message ?? `it answered ${status}`}${again}`, facts);
  }
  if (message === undefined) {
    throw unexpectedAnswer(origin, status);
  }
  throw new EndpointError('refused', message, facts);
}

/** Not a service of this project, or another version of it. */
function unexpectedAnswer(origin: string, status: number): EndpointError {
  const message = `${origin}: it answered ${status}, but not as blazar-enforcement does; is this the address of the service?`;
  return new EndpointError('failed', message, { status });
}

const LONGEST_MESSAGE = 2000;

/** Without the token, if a service echoes it. Shortened last: a truncated token would not be found. */
function messageOf(body: unknown, token = ''): string | undefined {
  const message = textIn(body, 'message');
  return (token === '' ? message : message?.replaceAll(token, '****'))?.slice(0, LONGEST_MESSAGE);
}

/** The tokens of the client: a given one, or Keystone's. */
interface Credentials {
  /** @throws EndpointError if Keystone issues none; the reason of `signal` */
  token(signal?: AbortSignal): Promise<string>;
  /** The service refuses this token. Returns whether to request another one. */
  refused(token: string): boolean;
  close(): Promise<void>;
}

function givenToken(token: string): Credentials {
  return { token: async () => token, refused: () => false, close: async () => {} };
}

/** Keystone errors caused by the configuration. All others are faults of Keystone or the connection. */
const MISTAKES: readonly KeystoneErrorCode[] = ['credentials', 'forbidden', 'configuration'];

/**
 * Tokens of this cloud of `clouds.yaml`; `envvars` = of the variables `OS_*`. Cached until shortly before
 * they expire.
 */
async function keystoneTokens(cloud: string): Promise<Credentials> {
  const { keystoneOptions } = await import('../openstack/keystone-options.ts');
  const { createKeystone } = await import('../openstack/keystone.ts');
  const { KeystoneError } = await import('../openstack/contract.ts');
  const { createSharedServices } = await import('../enforcement/services.ts');
  const quiet = () => {};
  const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const keystone = createKeystone(keystoneOptions.parse({ cloud }), createSharedServices({ logger }));
  return {
    token: async (signal) => {
      try {
        return await keystone.token({ signal });
      } catch (thrown) {
        signal?.throwIfAborted();
        const isMistake = thrown instanceof KeystoneError && MISTAKES.includes(thrown.code);
        const message = `no token of Keystone: ${errorText(thrown)}`;
        throw new EndpointError(isMistake ? 'refused' : 'failed', message);
      }
    },
    refused: (token) => {
      keystone.refused(token);
      return true;
    },
    close: () => keystone.close(),
  };
}
