/** Calls to the API server of a cluster, with the service account of this pod or a kubeconfig. */
import type { Dispatcher } from 'undici';
import { wholeOf } from '../../../base/growing-buffer.ts';
import type { Logger } from '../../../base/logger.ts';
import { tracedCall } from '../../../base/trace-context.ts';
import { packageVersion } from '../../../base/version.ts';
import { type ClusterAccess, isSameConnection, readServiceAccount } from '../credentials/cluster-access.ts';
import { readKubeconfig } from '../credentials/kubeconfig.ts';
import { RenewedAccess } from '../credentials/renewed-access.ts';
import { Connections, isClosedConnection, parseAnswer, retryAfter, unreachable } from './connections.ts';
import {
  type ApiClient,
  ApiError,
  type ApiRequest,
  ApiUnreachableError,
  type WatchEvent,
} from './contract.ts';
import { CallTime } from './timing.ts';
import { watchEvents } from './watch-stream.ts';

export interface ApiClientOptions {
  /** A file. Default: the service account of this pod. */
  readonly kubeconfig?: string | undefined;
  /** Default: the current one of the kubeconfig. */
  readonly context?: string | undefined;
  /** Variables with the address of a pod's API server. Default: `process.env` */
  readonly environment?: NodeJS.ProcessEnv;
  /** Default: `/var/run/secrets/kubernetes.io/serviceaccount` */
  readonly serviceAccountFolder?: string;
  /** For a whole call, without watches. Default: 10000. */
  readonly timeoutMs?: number;
  /** For the login program of a kubeconfig. Default: 30000. */
  readonly execTimeoutMs?: number | undefined;
  readonly logger?: Pick<Logger, 'info' | 'warn'>;
}

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** For a list that is read in pages. */
const MAX_PAGE_BYTES = 64 * 1024 * 1024;
/** Including the first. */
const MAX_TRIES = 3;
/** Reviews are created and not stored: creating one again changes nothing. */
const REVIEW = /reviews$/;
/** Names are untrusted: one must not lead to another object, even with an escaped slash or dot. */
const PATH = /^(?!.*%(2f|2e|5c))(\/(?!\.{1,2}(\/|$))[\w.:~%-]+)+$/i;

/** Opens no connection before the first call. @throws ConfigurationError for mistakes in the kubeconfig, or if this is not a pod */
export function createApiClient(options: ApiClientOptions = {}): ApiClient {
  return new Client(options);
}

/** In addition to the headers of every call. */
type Headers = Readonly<Record<string, string>>;

interface WholeAnswer extends Pick<Dispatcher.ResponseData, 'statusCode' | 'headers'> {
  readonly content: Buffer;
}

class Client implements ApiClient {
  readonly #access: RenewedAccess;
  readonly #timeoutMs: number;
  readonly #closing = new AbortController();
  readonly #ending = new Set<Promise<unknown>>();
  readonly #userAgent = `blazar-enforcement/${packageVersion()}`;
  #connections: Connections;
  serverTime: number | undefined;

  constructor(options: ApiClientOptions) {
    const {
      kubeconfig,
      context,
      environment,
      serviceAccountFolder,
      timeoutMs = TIMEOUT_MS,
      execTimeoutMs,
      logger,
    } = options;
    this.#timeoutMs = timeoutMs;
    this.#access = new RenewedAccess(
      () =>
        kubeconfig === undefined
          ? readServiceAccount(environment, serviceAccountFolder)
          : readKubeconfig(kubeconfig, context),
      { logger, execTimeoutMs },
    );
    this.#connections = new Connections(this.#access.latest);
  }

  get server(): string {
    const { origin, basePath } = this.#access.latest;
    return origin + basePath;
  }

  get namespace(): string | undefined {
    return this.#access.latest.namespace;
  }

  async request(request: ApiRequest): Promise<unknown> {
    const time = new CallTime(this.#timeoutMs, [request.signal, request.wait?.signal, this.#closing.signal]);
    try {
      const { statusCode, headers, content } = await this.#traced(request, (more) =>
        this.#tries(request, time, more),
      );
      return parseAnswer(this.server, statusCode, String(headers['content-type']), content);
    } catch (thrown) {
      throw thrown instanceof ApiError ? thrown : this.#unreachable(thrown, time);
    } finally {
      time.end();
    }
  }

  async *watch(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent> {
    const time = new CallTime(undefined, [signal, this.#closing.signal]);
    const request = { method: 'GET', path, query: { ...query, watch: 'true' } } as const;
    try {
      // The span covers the wait for the first byte: a watch lasts for minutes.
      const { statusCode, headers, body } = await this.#traced(request, (more) =>
        this.#send(request, time, 'watches', more),
      );
      if (statusCode !== 200) {
        const { 'content-type': type } = headers;
        parseAnswer(this.server, statusCode, String(type), await collect(body, MAX_ANSWER_BYTES));
        throw new ApiUnreachableError(`${this.server}: a watch is answered with ${statusCode}`);
      }
      yield* watchEvents(body);
    } catch (thrown) {
      throw thrown instanceof ApiError ? thrown : this.#unreachable(thrown, time);
    } finally {
      // Ends the connection, even if the caller stops in the middle.
      time.end('the watch is over');
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the client was closed'));
    this.#access.close();
    await Promise.all([this.#connections.close(), ...this.#ending]);
  }

  /** Paths name objects and accounts, and contain no secrets; queries are not shown. */
  #traced<Answer extends Pick<Dispatcher.ResponseData, 'statusCode'>>(
    { method, path }: ApiRequest,
    call: (more: Headers) => Promise<Answer>,
  ): Promise<Answer> {
    return tracedCall({ method, address: this.server + path }, call, ({ statusCode }) => statusCode);
  }

  /**
   * Retries requests that change nothing, after the pause that the API server requests, or if an idle
   * connection was closed.
   */
  async #tries(request: ApiRequest, time: CallTime, more: Headers): Promise<WholeAnswer> {
    const repeatable = request.method === 'GET' || (request.method === 'POST' && REVIEW.test(request.path));
    for (let tries = 1; ; tries += 1) {
      const isLast = !repeatable || tries === MAX_TRIES;
      try {
        const { statusCode, headers, body } = await this.#send(request, time, 'requests', more);
        const max = request.query?.limit === undefined ? MAX_ANSWER_BYTES : MAX_PAGE_BYTES;
        const content = await collect(body, max);
        const pause =
          statusCode === 429 || statusCode >= 500 ? retryAfter(headers['retry-after']) : undefined;
        if (isLast || pause === undefined || !(await time.pause(pause * 1000 + Math.random() * 100))) {
          return { statusCode, headers, content };
        }
      } catch (thrown) {
        if (isLast || !isClosedConnection(thrown)) {
          throw thrown;
        }
      }
    }
  }

  /** One call; after a 401 a second one, since tokens are replaced. */
  async #send(
    request: ApiRequest,
    time: CallTime,
    kind: 'requests' | 'watches',
    more: Headers,
  ): Promise<Dispatcher.ResponseData> {
    const access = await time.within(this.#access.current());
    const answer = await this.#sendAs(access, request, time, kind, more);
    if (answer.statusCode !== 401) {
      return answer;
    }
    await collect(answer.body, MAX_ANSWER_BYTES);
    return this.#sendAs(await time.within(this.#access.again(access)), request, time, kind, more);
  }

  async #sendAs(
    access: ClusterAccess,
    { method, path, query, body, contentType = 'application/merge-patch+json' }: ApiRequest,
    time: CallTime,
    kind: 'requests' | 'watches',
    more: Headers,
  ): Promise<Dispatcher.ResponseData> {
    time.signal.throwIfAborted();
    if (!PATH.test(path)) {
      throw new ApiUnreachableError('a call with a path that no API server has');
    }
    const search = query === undefined ? '' : `?${new URLSearchParams(query)}`;
    const answer = await this.#connectionsFor(access)[kind].request({
      method,
      path: `${access.basePath}${path}${search}`,
      headers: {
        accept: 'application/json',
        'user-agent': this.#userAgent,
        ...more,
        ...(access.authorization !== undefined && { authorization: access.authorization }),
        ...(body !== undefined && { 'content-type': method === 'PATCH' ? contentType : 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: time.signal,
    });
    const date = Date.parse(String(answer.headers.date));
    this.serverTime = Number.isNaN(date) ? undefined : date;
    return answer;
  }

  /** Earlier connections end with their calls. */
  #connectionsFor(access: ClusterAccess): Connections {
    const before = this.#connections;
    if (!isSameConnection(before.access, access)) {
      this.#connections = new Connections(access);
      const ending: Promise<unknown> = before
        .end()
        .catch(() => undefined)
        .finally(() => this.#ending.delete(ending));
      this.#ending.add(ending);
    }
    return this.#connections;
  }

  #unreachable(thrown: unknown, time: CallTime): ApiUnreachableError {
    return time.over === undefined
      ? unreachable(this.server, thrown)
      : new ApiUnreachableError(`${this.server}: ${time.over}`);
  }
}

function collect(body: Dispatcher.ResponseData['body'], maxBytes: number): Promise<Buffer> {
  const tooLong = () => new ApiUnreachableError(`the answer is longer than ${maxBytes} bytes`);
  return wholeOf(body, maxBytes, tooLong);
}
