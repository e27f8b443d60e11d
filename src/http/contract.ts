/** What a caller of other services is promised: types alone. `client.ts` keeps the promise. */
import type { HttpCallErrorCode } from './call-error.ts';

/** Times are in seconds and may have fractions. */
export interface HttpClientOptions {
  /** For a whole call: connecting, trying again, sending, waiting, reading the answer. More than 0. */
  readonly timeout: number;
  /** How often a call is tried again when nothing of it was sent: refused, unreachable, no such name. 0 or more. */
  readonly connectRetries: number;
  /** How many calls to one origin have to fail in a row for the next ones to fail at once. 0 = never. */
  readonly breakerFailures: number;
  /** For how long they do, until a single call is let through to try. 0 or more. */
  readonly breakerCooldown: number;
  /** An answer with a longer body is a failure, and its connection is dropped. Default 65536. */
  readonly maxAnswerBytes?: number | undefined;
  /** Sent with every call. They never pass through axios, and no error holds them. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly tls?: HttpClientTls | undefined;
}

/** PEM texts, for https. */
export interface HttpClientTls {
  /** Who may vouch for the server, in place of the authorities that Node trusts. */
  readonly ca?: string | Buffer | undefined;
  /** What to show to a server that asks who is calling. */
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
}

/** Whatever came back: a redirect is not followed, an error status is not thrown, a compressed body stays so. */
export interface HttpAnswer {
  readonly status: number;
  /** Read as UTF-8; empty when there was none. */
  readonly body: string;
  /** Those that were asked for and came once, by their names in lower case. Not there when none were asked for. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A `204` announced a body, against HTTP. It was not read, and its connection was closed. */
  readonly bodyDropped?: true;
}

/** What a call is told besides its address. */
export interface HttpCallOptions {
  /** Ends the call at once and drops its connection; for the circuit breaker it is then as if there had been no call. */
  readonly signal?: AbortSignal | undefined;
  /** Names of headers of the answer to be handed back, in lower case. */
  readonly answerHeaders?: readonly string[] | undefined;
  /** Sent with this call besides those of the client. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Is told of the calls of clients: what a service counts. It must not throw. `origin` is `scheme://host[:port]`. */
export interface HttpObserver {
  /** `outcome` is the status of the answer, or the code of the `HttpCallError`. */
  called(origin: string, outcome: number | HttpCallErrorCode, seconds: number): void;
  /** The first time when the first call is made: `closed`. */
  breakerChanged(origin: string, state: BreakerState): void;
}

/** `closed` lets calls through, `open` lets none, `half-open` waits for the one that is tried. */
export type BreakerState = 'closed' | 'half-open' | 'open';

/** Calls to other services, bounded in time and size, on kept-alive connections. */
export interface HttpClient {
  /** Posts a text that is JSON already. Rejects with an `HttpCallError` and nothing else. */
  postJson(url: string, json: string, call?: HttpCallOptions): Promise<HttpAnswer>;
  /** The same without a body. */
  get(url: string, call?: HttpCallOptions): Promise<HttpAnswer>;
  /** Drops all connections. Calls under way fail, and so does every later one. */
  close(): Promise<void>;
}
