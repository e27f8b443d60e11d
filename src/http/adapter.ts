import { setMaxListeners } from 'node:events';
import { Axios, type AxiosAdapter } from 'axios';
import { type Dispatcher, Pool } from 'undici';
import type { HttpAnswer, HttpClientTls } from './contract.ts';
import { announcesBody, endedByStrayBytes } from './left-over.ts';

/** One try of a call, as the transport and whoever started it see it. */
export interface Attempt {
  /** Whether any of it may have reached the other side. Set by the transport. */
  sent: boolean;
  /** Ends the try at once with `reason` and drops its connection. Set by the transport, while the try runs. */
  cancel: ((reason: Error) => void) | undefined;
  /** In lower case. */
  readonly answerHeaders: readonly string[];
  /** Names and values by turns: of this call alone. */
  readonly headers: readonly string[];
}

export interface TransportOptions {
  /** Milliseconds. */
  readonly connectTimeout: number;
  readonly maxAnswerBytes: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: HttpClientTls;
}

/** The kept-alive connections to one origin. */
export interface Transport {
  /** One try, a POST or without a body a GET. Rejects with what undici or Node says, or with the reason given to `attempt.cancel`. */
  request(path: string, json: string | undefined, attempt: Attempt): Promise<HttpAnswer>;
  close(): Promise<void>;
}

/** Enough for a burst of leases, and far from the limit of open files. More calls at once wait their turn. */
const MAX_CONNECTIONS = 128;

/**
 * How long an idle connection is kept when the service doesn't say: less than the shortest default in use (gunicorn's
 * 2 s), since a request that crosses the closing of its connection is lost and may not be sent again. A service that
 * says how long it waits (`Keep-Alive: timeout=5`) is believed, less a second.
 */
const IDLE_MS = 1_000;
const MAX_IDLE_MS = 60_000;

const utf8 = new TextDecoder();

/** `origin` is `scheme://host[:port]`. Nothing is opened before the first `request`. */
export function createTransport(origin: string, options: TransportOptions): Transport {
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  const pool = new Pool(origin, {
    connect: {
      ...options.tls,
      // Said here, so that NODE_TLS_REJECT_UNAUTHORIZED=0 does not unsay it.
      rejectUnauthorized: true,
      timeout: options.connectTimeout,
      // Ends connections in the making too, which the pool forgets and which would keep the process alive.
      signal: closing.signal,
    },
    allowH2: false,
    connections: MAX_CONNECTIONS,
    pipelining: 1,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: MAX_IDLE_MS,
    maxResponseSize: options.maxAnswerBytes,
    // The call as a whole has a deadline; these would only cost timers.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  let reset = false;
  pool.on('disconnect', (_origin, _targets, error) => {
    // Bytes that are not HTTP may be the rest of the answer before them. Such a service gets a connection for each call.
    reset ||= endedByStrayBytes(error);
  });
  // The same on every call, so axios need not copy and check them each time, which would be a quarter of its cost.
  const headers = Object.entries(options.headers);
  const sent = {
    POST: headers.flat(),
    // There is no body that it could say something of.
    GET: headers.filter(([name]) => name !== 'content-type').flat(),
  };
  // Not `axios.create`: without axios's defaults there are no transforms to run and little to merge.
  const axios = new Axios();
  return {
    async request(path, json, attempt) {
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
      await pool.destroy();
      closing.abort();
    },
  };
}

/** Of an answer what is not handed through axios, which would make an object of its own of it. */
interface Aside {
  /** Those that were asked for. */
  headers: Record<string, string>;
  bodyDropped: boolean;
}

/** Hands the request that axios made to the pool and collects the answer. Follows, decodes and judges nothing. */
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
      const chunks: Buffer[] = [];
      // What refers to a finished exchange keeps it through a garbage collection: that alone took a tenth of the time.
      const finish = () => {
        exchange = undefined;
        attempt.cancel = undefined;
      };
      attempt.cancel = (reason) => {
        cancelled = reason;
        exchange?.abort(reason);
        finish();
        reject(reason);
      };
      pool.dispatch(
        { ...request, path: config.url ?? '/', body: config.data },
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
            // Begun anew, since an early hint may have come before.
            aside.headers = {};
            for (const name of attempt.answerHeaders) {
              const value = received[name];
              if (typeof value === 'string') {
                aside.headers[name] = value;
              }
            }
            if (status === 204 && announcesBody(received)) {
              aside.bodyDropped = true;
              finish();
              resolve({ status, statusText: '', headers: {}, data: '', config });
              controller.abort(new Error('a 204 has no body'));
            }
          },
          onResponseData(_controller, chunk) {
            chunks.push(chunk);
          },
          onResponseEnd() {
            finish();
            const data = chunks.length === 0 ? '' : utf8.decode(Buffer.concat(chunks));
            resolve({ status, statusText: '', headers: {}, data, config });
          },
          onResponseError(_controller, error) {
            finish();
            reject(error);
          },
        },
      );
    });
}
