import { setMaxListeners } from 'node:events';
import { Axios, type AxiosAdapter } from 'axios';
import {
  CircuitState,
  ConsecutiveBreaker,
  ConstantBackoff,
  circuitBreaker,
  handleWhen,
  type IBackoff,
  type IBackoffFactory,
  isBrokenCircuitError,
  retry,
} from 'cockatiel';
import { type Dispatcher, Pool } from 'undici';
import { GrowingBuffer } from '../base/growing-buffer.ts';
import {
  announcesBody,
  type Called,
  callError,
  endedByStrayBytes,
  type HttpCallError,
  hasCode,
} from './call-error.ts';
import type { BreakerState, HttpAnswer, HttpClientOptions } from './contract.ts';

/** One attempt of a call: shared by the transport and its caller. */
export interface Attempt {
  /** Whether any part may have reached the service. Set by the transport. */
  sent: boolean;
  /**
   * Ends the attempt at once with `reason` and closes its connection. Set by the transport while the attempt
   * runs.
   */
  cancel: ((reason: Error) => void) | undefined;
  /** Names of the response headers to return, in lower case. */
  readonly answerHeaders: readonly string[];
  /** Alternating names and values, for this call only. */
  readonly headers: readonly string[];
}

const DEFAULT_HEADERS = { 'content-type': 'application/json', 'user-agent': 'blazar-enforcement' };
const DEFAULT_MAX_ANSWER_BYTES = 65_536;

/** The kept-alive connections to one origin. */
export interface Transport {
  /**
   * One attempt: a POST, or a GET if there is no body. Rejects with undici's or Node's error, or
   * `attempt.cancel`'s reason.
   */
  request(path: string, json: string | undefined, attempt: Attempt): Promise<HttpAnswer>;
  close(): Promise<void>;
}

/** Enough for a burst of leases, far below the limit of open files. Further calls wait. */
const MAX_CONNECTIONS = 128;

/**
 * How long an idle connection is kept by default: less than the shortest common default of services
 * (gunicorn's 2 s), because a request on a connection that the service closes is lost, and may not be
 * repeated. If a service announces its timeout (`Keep-Alive: timeout=5`), connections are kept for one second
 * less.
 */
const IDLE_MS = 1_000;
const MAX_IDLE_MS = 60_000;
/**
 * Then all connections are replaced: busy ones would never follow a name that has moved, as long as the old
 * server answers.
 */
const LIFETIME_MS = 60_000;

const utf8 = new TextDecoder();

/** `origin` is `scheme://host[:port]`. Opens no connection before the first `request`. `connectTimeout`: in milliseconds. */
export function createTransport(
  origin: string,
  { headers: own = {}, tls, maxAnswerBytes }: HttpClientOptions,
  connectTimeout: number,
): Transport {
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  let reset = false;
  /** The last one is in use; the others finish their calls. */
  const pools = new Set<Pool>();
  const openPool = () => {
    const opened = new Pool(origin, {
      connect: {
        ...tls,
        // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 has no effect.
        rejectUnauthorized: true,
        timeout: connectTimeout,
        // Also ends connection attempts, which the pool forgets and which would keep the process alive.
        signal: closing.signal,
      },
      allowH2: false,
      connections: MAX_CONNECTIONS,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: MAX_IDLE_MS,
      maxResponseSize: maxAnswerBytes ?? DEFAULT_MAX_ANSWER_BYTES,
      // The call has a deadline; these would only cost timers.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    opened.on('disconnect', (_origin, _targets, error) => {
      // Bytes that are not HTTP may belong to an earlier answer. Such a service gets a new connection per call.
      reset ||= endedByStrayBytes(error);
    });
    pools.add(opened);
    return opened;
  };
  let pool = openPool();
  let openedAt = performance.now();
  // Not passed through axios, which would copy and check them on every call: a quarter of its cost.
  const lowerCase = Object.entries(own).map(([name, value]) => [name.toLowerCase(), value] as const);
  const headers = Object.entries({ ...DEFAULT_HEADERS, ...Object.fromEntries(lowerCase) });
  const sent = {
    POST: headers.flat(),
    // A GET has no body.
    GET: headers.filter(([name]) => name !== 'content-type').flat(),
  };
  // Not `axios.create`: without the defaults of axios it runs no transforms and merges little.
  const axios = new Axios();
  return {
    async request(path, json, attempt) {
      if (performance.now() - openedAt > LIFETIME_MS) {
        const before = pool;
        before.close().then(
          () => pools.delete(before),
          () => {},
        );
        pool = openPool();
        openedAt = performance.now();
      }
      const method = json === undefined ? 'GET' : 'POST';
      const aside: Aside = { headers: {}, bodyDropped: false };
      const headers = attempt.headers.length === 0 ? sent[method] : [...sent[method], ...attempt.headers];
      const adapter = poolAdapter(pool, { method, headers, reset }, attempt, aside);
      const { status, data: body } = await axios.request<string>({ method, url: path, data: json, adapter });
      return {
        status,
        body,
        ...(attempt.answerHeaders.length > 0 && { headers: aside.headers }),
        ...(aside.bodyDropped && { bodyDropped: true as const }),
      };
    },
    async close() {
      await Promise.all([...pools].map((one) => one.destroy()));
      closing.abort();
    },
  };
}

/** Parts of an answer that bypass axios, which would copy them into its own object. */
interface Aside {
  headers: Record<string, string>;
  bodyDropped: boolean;
}

/** Passes the request of axios to the pool and collects the answer. Neither follows redirects nor decodes. */
function poolAdapter(
  pool: Pool,
  request: Pick<Dispatcher.DispatchOptions, 'method' | 'headers' | 'reset'>,
  attempt: Attempt,
  aside: Aside,
): AxiosAdapter {
  return (config) =>
    new Promise((resolve, reject) => {
      let exchange: Dispatcher.DispatchController | undefined;
      let cancelled: Error | undefined;
      let status = 0;
      const answer = new GrowingBuffer();
      // References to finished exchanges keep them in memory, and cost a tenth of the time in garbage collection.
      const finish = () => {
        exchange = undefined;
        attempt.cancel = undefined;
      };
      const end = () => {
        finish();
        const data = answer.length === 0 ? '' : utf8.decode(answer.bytes);
        resolve({ status, statusText: '', headers: {}, data, config });
      };
      // A 403 that is too long, late or broken off denies all the same. Who asks can make its reason long.
      const fail = (error: Error) => {
        if (status === 403) {
          end();
        } else {
          finish();
          reject(error);
        }
      };
      attempt.cancel = (reason) => {
        cancelled = reason;
        exchange?.abort(reason);
        fail(reason);
      };
      pool.dispatch(
        // Not after the spread, as in `PooledHttpClient`.
        { path: config.url ?? '/', body: config.data, ...request },
        {
          onRequestStart(controller) {
            if (cancelled !== undefined) {
              controller.abort(cancelled);
              return;
            }
            exchange = controller;
            attempt.sent = true;
          },
          onResponseStart(controller, statusCode, received) {
            status = statusCode;
            // Reset, because an early hint may have come first.
            aside.headers = {};
            for (const name of attempt.answerHeaders) {
              const value = received[name];
              if (typeof value === 'string') {
                aside.headers[name] = value;
              }
            }
            if (status === 204 && announcesBody(received)) {
              aside.bodyDropped = true;
              end();
              controller.abort(new Error('a 204 has no body'));
            }
          },
          onResponseData(_controller, chunk) {
            answer.push(chunk);
          },
          onResponseEnd: end,
          onResponseError: (_controller, error) => fail(error),
        },
      );
    });
}

/** Runs the attempts of a call: retries failed connections, fails at once while the circuit breaker is open. */
export type Guard = (called: Called, attempt: () => Promise<HttpAnswer>) => Promise<HttpAnswer>;

/** Enough for a service to restart. */
const RETRY_PAUSE_MS = 100;

const STATES: Readonly<Record<CircuitState, BreakerState>> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.HalfOpen]: 'half-open',
  [CircuitState.Open]: 'open',
  [CircuitState.Isolated]: 'open',
};

/** A guard for one origin. Calls `breakerChanged` with its first state and every later one. */
export function createGuard(
  options: HttpClientOptions,
  breakerChanged: (state: BreakerState) => void = () => {},
): Guard {
  const retries = retry(
    handleWhen((error) => hasCode(error, 'connect')),
    {
      maxAttempts: options.connectRetries,
      backoff: new ConstantBackoff(RETRY_PAUSE_MS),
    },
  ).dangerouslyUnref();
  if (options.breakerFailures === 0) {
    return (_called, attempt) => retries.execute(attempt);
  }

  const breaker = circuitBreaker(
    handleWhen((error) => !isAborted(error)).orWhenResult((answer) => (answer as HttpAnswer).status >= 500),
    {
      breaker: new ConsecutiveBreaker(options.breakerFailures),
      // An aborted trial shows nothing about the service: the next call is a trial again.
      halfOpenAfter: cooldown(({ result }) =>
        'error' in result && result.error instanceof AbortedTrial ? 0 : options.breakerCooldown * 1000,
      ),
    },
  );
  breakerChanged('closed');
  breaker.onStateChange((state) => breakerChanged(STATES[state]));
  return async (called, attempt) => {
    // cockatiel would make these calls wait for the trial; calls to a failed service must not wait.
    if (breaker.state === CircuitState.HalfOpen) {
      throw brokenError(called);
    }
    const trial = breaker.state === CircuitState.Open;
    try {
      return await breaker.execute(() =>
        trial ? retries.execute(attempt).catch(markAborted) : retries.execute(attempt),
      );
    } catch (error) {
      if (isBrokenCircuitError(error)) {
        throw brokenError(called);
      }
      throw error instanceof AbortedTrial ? error.cause : error;
    }
  };
}

/**
 * cockatiel measures durations by the time of day. If the clock is set back by an hour, it would block calls
 * to a recovered service for an hour.
 */
function cooldown<Context>(milliseconds: (context: Context) => number): IBackoffFactory<Context> {
  const next = (context: Context): IBackoff<Context> => {
    const until = performance.now() + milliseconds(context);
    return {
      next,
      get duration() {
        return performance.now() < until ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
      },
    };
  };
  return { next };
}

/** cockatiel counts a trial that ends with an unhandled error as a success. It handles this error. */
class AbortedTrial extends Error {}

function markAborted(error: unknown): never {
  throw isAborted(error) ? new AbortedTrial('', { cause: error }) : error;
}

function isAborted(error: unknown): boolean {
  return hasCode(error, 'aborted') || hasCode(error, 'closed');
}

function brokenError(called: Called): HttpCallError {
  return callError('breaker-open', called, 'not sent, because the calls before it failed');
}
