/** The interface of the HTTP client: types only. `client.ts` implements it. */
import type { HttpCallErrorCode } from './call-error.ts';

/** Times are in seconds and may be fractional. */
export interface HttpClientOptions {
  /** For the whole call: connecting, retries, sending, waiting, reading the answer. More than 0. */
  readonly timeout: number;
  /** Number of retries if nothing was sent: refused, unreachable, unknown name. 0 or more. */
  readonly connectRetries: number;
  /** After this many failures in a row, further calls to the origin fail at once. 0 = never. */
  readonly breakerFailures: number;
  /** How long calls fail at once, before a single trial call. 0 or more. */
  readonly breakerCooldown: number;
  /** A longer body is a failure, except of a `403`; its connection is closed. Default: 65536. */
  readonly maxAnswerBytes?: number | undefined;
  /** Sent with every call. They bypass axios, and no error contains them. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly tls?: HttpClientTls | undefined;
  /** URL paths are secrets: traces must not show them. Default: false. */
  readonly hidesPath?: boolean | undefined;
}

/** PEM texts, for https. */
export interface HttpClientTls {
  /** Trusted authorities, instead of Node's. */
  readonly ca?: string | Buffer | undefined;
  /** The client certificate. */
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
}

/** The raw answer: redirects are not followed, error statuses not thrown, bodies not decompressed. */
export interface HttpAnswer {
  readonly status: number;
  /** Decoded as UTF-8; empty if there is none. Of a `403` that is too long, late or broken off: what has come. */
  readonly body: string;
  /** The requested headers that came exactly once, by lower-case name. Missing if none were requested. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A `204` announced a body, against HTTP. It was not read; its connection was closed. */
  readonly bodyDropped?: true;
}

/** Options of one call. */
export interface HttpCallOptions {
  /** Ends the call at once and closes its connection. The circuit breaker does not count such a call. */
  readonly signal?: AbortSignal | undefined;
  /** Names of the response headers to return, in lower case. */
  readonly answerHeaders?: readonly string[] | undefined;
  /** Sent with this call, in addition to the client's headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Notified of calls, for metrics. It must not throw. `origin` is `scheme://host[:port]`. */
export interface HttpObserver {
  /** `outcome` is the status of the answer, or the code of the `HttpCallError`. */
  called(origin: string, outcome: number | HttpCallErrorCode, seconds: number): void;
  /** Called first with `closed`, at the first call. */
  breakerChanged(origin: string, state: BreakerState): void;
}

/** `closed`: calls pass. `open`: calls fail at once. `half-open`: one trial call is in progress. */
export type BreakerState = 'closed' | 'half-open' | 'open';

/** Calls to other services, bounded in time and size, on kept-alive connections. */
export interface HttpClient {
  /** Posts a JSON text. Rejects only with an `HttpCallError`. */
  postJson(url: string, json: string, call?: HttpCallOptions): Promise<HttpAnswer>;
  /** A GET request. Rejects only with an `HttpCallError`. */
  get(url: string, call?: HttpCallOptions): Promise<HttpAnswer>;
  /** Closes all connections. Calls in progress and later calls fail. */
  close(): Promise<void>;
}
