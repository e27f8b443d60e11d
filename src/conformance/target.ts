/** The service under test: requests, their responses, and the connections that carry them. */
import { setImmediate as afterEvents } from 'node:timers/promises';
import { Client, type Dispatcher } from 'undici';
import { GrowingBuffer } from '../base/growing-buffer.ts';
import { withoutSecrets } from '../base/visible-text.ts';
import { callError, endedByStrayBytes } from '../http/call-error.ts';
import type { Fields, TestLease } from './leases.ts';

/** The credentials of a request; without any, neither header is sent. */
export interface Credentials {
  /** As `X-Auth-Token`. */
  readonly token?: string | undefined;
  /** As `Authorization: Bearer`. */
  readonly bearer?: string | undefined;
}

export interface TargetOptions {
  /** http or https URLs without credentials. Operations without a URL are not tested. */
  readonly endpoints: Readonly<Partial<Record<Operation, URL | undefined>>>;
  readonly credentials: Credentials;
  /** Seconds for each request, from connecting to the last byte of its response. */
  readonly timeout: number;
}

interface Message {
  readonly operation: Operation;
  /** The body in words, for display: `a lease of 10,000 hosts`. */
  readonly what: string;
  /** Text is sent unchanged, everything else as JSON. */
  readonly body: unknown;
  /** Default: the credentials of the run. */
  readonly credentials?: Credentials;
  /** Default: a separate connection, as Blazar opens one for each request. */
  readonly connection?: Connection;
  /** Sent as `Idempotency-Key`: the same key marks a repeated request. */
  readonly key?: string | undefined;
}

/** A request and its response. Only `answer` can contain a token. */
export interface Exchange {
  readonly operation: Operation;
  /** Without its query. */
  readonly url: string;
  readonly what: string;
  readonly bytes: number;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Whether it is a request as Blazar sends it, with the credentials of the run: the response is then the
   * service's verdict.
   */
  readonly valid: boolean;
  /** Unchanged, for checks; `excerpt` is for display. */
  readonly answer: Answer | undefined;
  /** The start of the response body. */
  readonly excerpt: string;
  /** Why there is no response. */
  readonly failure: string | undefined;
  readonly milliseconds: number;
}

/** No connection to the service was ever established: nothing can be proven. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

const EXCERPT_LENGTH = 500;
const HIDDEN = '****';

/** The policy service under test. Keeps every exchange. */
export class Target {
  readonly exchanges: Exchange[] = [];
  readonly credentials: Credentials;
  readonly operations: readonly Operation[];
  readonly #endpoints: TargetOptions['endpoints'];
  readonly #timeout: number;
  readonly #reached = new Set<string>();
  /** Allowed leases whose end is not reported yet: lease id → the body of its `on-end`. */
  readonly #open = new Map<string, unknown>();
  #respondsToEnd = true;
  #notTold = 0;

  constructor({ endpoints, credentials, timeout }: TargetOptions) {
    this.#endpoints = endpoints;
    this.#timeout = timeout;
    this.credentials = credentials;
    this.operations = OPERATIONS.filter((operation) => endpoints[operation] !== undefined);
  }

  get hasCredentials(): boolean {
    return this.credentials.token !== undefined || this.credentials.bearer !== undefined;
  }

  /** Number of leases that the service still counts. */
  get notEnded(): number {
    return this.#open.size + this.#notTold;
  }

  has(operation: Operation): boolean {
    return this.operations.includes(operation);
  }

  /** A connection for several messages to one endpoint. The caller closes it. */
  connect(operation: Operation): Connection {
    return openConnection(this.#url(operation).origin, this.#timeout);
  }

  /** Rejects only with `UnreachableError`, if there never was a connection. */
  async send(message: Message, valid = false): Promise<Exchange> {
    const { operation, what, body, credentials = this.credentials } = message;
    const url = this.#url(operation);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const headers = {
      'Content-Type': 'application/json',
      'User-Agent': 'blazar-enforcement',
      ...(credentials.token === undefined ? {} : { 'X-Auth-Token': credentials.token }),
      ...(credentials.bearer === undefined ? {} : { Authorization: `Bearer ${credentials.bearer}` }),
      ...(message.key === undefined ? {} : { 'Idempotency-Key': message.key }),
    };
    const connection = message.connection ?? openConnection(url.origin, this.#timeout);
    const started = performance.now();
    const reply = await connection.post(url, headers, text);
    const milliseconds = Math.round(performance.now() - started);
    if (message.connection === undefined) {
      await connection.close();
    }
    this.#noteReached(url, reply);
    const answer = 'failure' in reply ? undefined : reply;
    const exchange: Exchange = {
      operation,
      url: url.origin + url.pathname,
      what,
      bytes: Buffer.byteLength(text),
      headers: shownHeaders(headers),
      valid,
      answer,
      excerpt: this.#withoutTokens(answer?.body ?? '').slice(0, EXCERPT_LENGTH),
      failure: 'failure' in reply ? this.#withoutTokens(reply.failure) : undefined,
      milliseconds,
    };
    this.exchanges.push(exchange);
    return exchange;
  }

  /** Sends a request about a lease, like Blazar. `settle` ends allowed leases. */
  async ask(
    operation: Operation,
    lease: TestLease,
    what: string,
    { changes = lease.current, ...options }: AskOptions = {},
  ): Promise<Exchange> {
    const update = lease.update(changes);
    const body = {
      create: lease.create,
      update,
      end: lease.end(),
      commitCreate: lease.commit,
      commitUpdate: update,
    }[operation];
    const exchange = await this.send(
      { operation, what, body, ...options },
      options.credentials === undefined,
    );
    if (operation !== 'end') {
      const { reservations: _, ...others } = changes;
      this.noteAllowed(exchange, lease.id, lease.end(others));
    } else if (exchange.answer?.status === 204) {
      this.#open.delete(lease.id);
    }
    return exchange;
  }

  /** `settle` will report the end of the lease with this body. */
  noteAllowed(exchange: Exchange, id: string, end: unknown): void {
    if (exchange.answer?.status === 204) {
      this.#open.set(id, end);
    }
  }

  /** Reports the end of all allowed leases, once each, so that the service refunds their charges. */
  async settle(): Promise<void> {
    for (const [id, body] of this.#open) {
      // A service that does not respond would cost the whole timeout each time.
      if (!this.has('end') || !this.#respondsToEnd) {
        return;
      }
      this.#open.delete(id);
      const message: Message = { operation: 'end', what: 'the end of a lease that was allowed', body };
      const { answer } = await this.send(message, true);
      this.#respondsToEnd = answer !== undefined;
      this.#notTold += answer?.status === 204 ? 0 : 1;
    }
  }

  /** Whether a response has a token of the run in its head or body. */
  showsToken({ answer }: Exchange): boolean {
    const whole = JSON.stringify(answer) ?? '';
    return this.#withoutTokens(whole) !== whole;
  }

  #url(operation: Operation): URL {
    const url = this.#endpoints[operation];
    if (url === undefined) {
      throw new Error(`there is no endpoint to ${operation}`);
    }
    return url;
  }

  #noteReached({ origin }: URL, reply: Answer | NoAnswer): void {
    if (!('failure' in reply) || reply.connected) {
      this.#reached.add(origin);
    } else if (!this.#reached.has(origin)) {
      throw new UnreachableError(this.#withoutTokens(reply.failure));
    }
  }

  /** Hides tokens: a service may return what it received, in JSON or unchanged. */
  #withoutTokens(text: string): string {
    return withoutSecrets(text, [this.credentials.token, this.credentials.bearer]);
  }
}

interface AskOptions extends Pick<Message, 'credentials' | 'connection' | 'key'> {
  /** The `lease` of an update. Default: the current lease. */
  readonly changes?: Fields;
}

function shownHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const secret = (name: string) => name === 'X-Auth-Token' || name === 'Authorization';
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, secret(name) && value !== '' ? HIDDEN : value]),
  );
}

/** The operations of the protocol, with the flag for the URL of each. */
export const ENDPOINT_FLAGS = {
  create: '--create-endpoint',
  update: '--update-endpoint',
  end: '--end-endpoint',
  commitCreate: '--commit-create-endpoint',
  commitUpdate: '--commit-update-endpoint',
} as const;

export type Operation = keyof typeof ENDPOINT_FLAGS;

/** In the order in which they are tried. */
const OPERATIONS = Object.keys(ENDPOINT_FLAGS) as Operation[];

/** A longer response is an error, as for the filter of this package. */
const MAX_ANSWER_BYTES = 65_536;

interface Answer {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Decoded as UTF-8, otherwise unchanged. */
  readonly body: string;
  /** Whether unannounced bytes followed it. */
  readonly strayBytes: boolean;
}

interface NoAnswer {
  /** The URL and the reason, in one sentence. */
  readonly failure: string;
  /** Whether there was a connection, so that the service may have processed the request. */
  readonly connected: boolean;
}

/** One connection to the service. Opened by the first request; open as long as the service keeps it. */
interface Connection {
  /** Does not follow redirects or retry. Never rejects. */
  post(url: URL, headers: Readonly<Record<string, string>>, body: string): Promise<Answer | NoAnswer>;
  close(): Promise<void>;
}

/** `timeout`: in seconds, for each request, from connecting to the last byte of its response. */
function openConnection(origin: string, timeout: number): Connection {
  const closing = new AbortController();
  const client = new Client(origin, {
    // The signal also aborts connecting. NODE_TLS_REJECT_UNAUTHORIZED=0 would make the result meaningless.
    connect: { rejectUnauthorized: true, timeout: 0, signal: closing.signal },
    allowH2: false,
    pipelining: 1,
    maxResponseSize: MAX_ANSWER_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  let strayBytes = false;
  client.on('disconnect', (_origin, _targets, error) => {
    strayBytes = endedByStrayBytes(error);
  });
  const destroy = async () => {
    closing.abort();
    await client.destroy();
  };
  return {
    async post(url, headers, body) {
      const path = url.pathname + url.search;
      let connected = false;
      let expired = false;
      const timer = setTimeout(() => {
        expired = true;
        void destroy();
      }, timeout * 1000);
      try {
        const answer = await exchange(client, { path, method: 'POST', headers, body }, () => {
          connected = true;
        });
        // By now, bytes that arrived with the response have been noticed and have ended the connection.
        await afterEvents();
        return { ...answer, strayBytes };
      } catch (thrown) {
        const called = { method: 'POST', url } as const;
        const error = expired
          ? callError(
              'timeout',
              called,
              `${connected ? 'no whole answer' : 'no connection'} within ${timeout} s`,
            )
          : connected
            ? callError('transport', called, 'no usable answer', thrown)
            : callError('connect', called, 'no connection', thrown);
        return { failure: error.message, connected };
      } finally {
        clearTimeout(timer);
      }
    },
    close: destroy,
  };
}

function exchange(
  client: Client,
  request: Dispatcher.DispatchOptions,
  onConnected: () => void,
): Promise<Omit<Answer, 'strayBytes'>> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let headers: Answer['headers'] = {};
    const body = new GrowingBuffer();
    const answer = () => ({ status, headers, body: body.bytes.toString('utf8') });
    client.dispatch(request, {
      onRequestStart: onConnected,
      onResponseStart(_controller, statusCode, received) {
        status = statusCode;
        headers = Object.fromEntries(Object.entries(received).map(([name, value]) => [name, String(value)]));
      },
      onResponseData(_controller, chunk) {
        body.push(chunk);
      },
      onResponseEnd() {
        resolve(answer());
      },
      onResponseError(_controller, error) {
        // Nothing may follow the head of a 204; such bytes broke the connection, not the response.
        if (status === 204) {
          resolve(answer());
        } else {
          reject(status === 0 ? error : new Error(`the answer ${status} broke off: ${error.message}`));
        }
      },
    });
  });
}
