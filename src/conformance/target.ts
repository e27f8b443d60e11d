import { type Answer, type Connection, type NoAnswer, openConnection } from './connection.ts';
import type { TestLease } from './leases.ts';
import { OPERATIONS, type Operation } from './operations.ts';

/** What a request is sent with; an empty one has neither header. */
export interface Credentials {
  /** As `X-Auth-Token`. */
  readonly token?: string | undefined;
  /** As `Authorization: Bearer`. */
  readonly bearer?: string | undefined;
}

export interface TargetOptions {
  /** http or https URLs without credentials. What has none is not tested. */
  readonly endpoints: Readonly<Partial<Record<Operation, URL | undefined>>>;
  readonly credentials: Credentials;
  /** Seconds for each request, from connecting to the last byte of its answer. */
  readonly timeout: number;
}

export interface Message {
  readonly operation: Operation;
  /** The body in words, for people: `a lease of 10,000 hosts`. */
  readonly what: string;
  /** A text is sent as it is, everything else as JSON. */
  readonly body: unknown;
  /** Default: those of the run. */
  readonly credentials?: Credentials;
  /** Default: a connection of its own, as Blazar opens one for each request. */
  readonly connection?: Connection;
  /** Sent as `Idempotency-Key`: the same one says that a request is sent again. */
  readonly key?: string | undefined;
}

/** What was sent and what came. Nothing in it but `answer` can hold a token. */
export interface Exchange {
  readonly operation: Operation;
  /** Without its query. */
  readonly url: string;
  readonly what: string;
  readonly bytes: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A request as Blazar sends it, with the credentials of the run: what comes is the service's verdict. */
  readonly valid: boolean;
  /** As it came, for checks to look at; people are shown `excerpt`. */
  readonly answer: Answer | undefined;
  /** The start of the answer's body. */
  readonly excerpt: string;
  /** Why there is no answer. */
  readonly failure: string | undefined;
  readonly milliseconds: number;
}

/** There was not one connection to the service: nothing can be proven. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

const EXCERPT_LENGTH = 500;
const HIDDEN = '****';

/** The policy service under test: is sent what checks ask for, and everything that came back is kept. */
export class Target {
  readonly exchanges: Exchange[] = [];
  readonly credentials: Credentials;
  readonly operations: readonly Operation[];
  readonly #endpoints: TargetOptions['endpoints'];
  readonly #timeout: number;
  readonly #reached = new Set<string>();
  /** What the service allowed and was not yet told to have ended: lease id → the body of its `on-end`. */
  readonly #open = new Map<string, unknown>();
  #endsAreAnswered = true;
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

  /** Leases that the service believes to go on. */
  get notEnded(): number {
    return this.#open.size + this.#notTold;
  }

  has(operation: Operation): boolean {
    return this.operations.includes(operation);
  }

  /** A connection that is kept, for several messages to one endpoint. Whoever opens it closes it. */
  connect(operation: Operation): Connection {
    return openConnection(this.#url(operation).origin, this.#timeout);
  }

  /** Never rejects for what the service does; only with `UnreachableError` where nothing has ever listened. */
  async send(message: Message, valid = false): Promise<Exchange> {
    const { operation, what, body, credentials = this.credentials } = message;
    const url = this.#url(operation);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const headers = {
      ...headersWith(credentials),
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

  /** Asks whether a lease may be. `options` as of `send`. */
  async create(lease: TestLease, what: string, options: SendOptions = {}): Promise<Exchange> {
    const exchange = await this.#ask('create', what, lease.create, options);
    this.noteAllowed(exchange, lease.id, lease.end());
    return exchange;
  }

  /** Asks to record a lease that was allowed. */
  async commitCreate(lease: TestLease, what: string, options: SendOptions = {}): Promise<Exchange> {
    const exchange = await this.#ask('commitCreate', what, lease.commit, options);
    this.noteAllowed(exchange, lease.id, lease.end());
    return exchange;
  }

  /** Asks to record a change that was allowed. */
  async commitUpdate(
    lease: TestLease,
    changes: Readonly<Record<string, unknown>>,
    what: string,
    options: SendOptions = {},
  ): Promise<Exchange> {
    const exchange = await this.#ask('commitUpdate', what, lease.update(changes), options);
    const { reservations: _, ...others } = changes;
    this.noteAllowed(exchange, lease.id, lease.end(others));
    return exchange;
  }

  /** Asks whether a lease may become another: `changes` is the `lease` of the request. */
  async update(
    lease: TestLease,
    changes: Readonly<Record<string, unknown>>,
    what: string,
    options: SendOptions = {},
  ): Promise<Exchange> {
    const exchange = await this.#ask('update', what, lease.update(changes), options);
    const { reservations: _, ...others } = changes;
    this.noteAllowed(exchange, lease.id, lease.end(others));
    return exchange;
  }

  /** Tells that a lease has ended. */
  async end(lease: TestLease, what: string, options: SendOptions = {}): Promise<Exchange> {
    const exchange = await this.#ask('end', what, lease.end(), options);
    if (exchange.answer?.status === 204) {
      this.#open.delete(lease.id);
    }
    return exchange;
  }

  /** What was allowed is told to have ended by `settle`, with this body. */
  noteAllowed(exchange: Exchange, id: string, end: unknown): void {
    if (exchange.answer?.status === 204) {
      this.#open.set(id, end);
    }
  }

  /** Tells the service that all it has allowed is over, so that it gives back what it charged. Once for each lease. */
  async settle(): Promise<void> {
    for (const [id, body] of this.#open) {
      // One that was silent would cost the whole timeout, each time.
      if (!this.has('end') || !this.#endsAreAnswered) {
        return;
      }
      this.#open.delete(id);
      const message: Message = { operation: 'end', what: 'the end of a lease that was allowed', body };
      const { answer } = await this.send(message, true);
      this.#endsAreAnswered = answer !== undefined;
      this.#notTold += answer?.status === 204 ? 0 : 1;
    }
  }

  #ask(operation: Operation, what: string, body: unknown, options: SendOptions): Promise<Exchange> {
    return this.send({ operation, what, body, ...options }, options.credentials === undefined);
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

  /** A service may send back what it was sent, in JSON or as it is. */
  #withoutTokens(text: string): string {
    return (
      [this.credentials.token, this.credentials.bearer]
        .filter((secret) => secret !== undefined)
        .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
        // Of one that begins with another nothing must be left.
        .sort((one, other) => other.length - one.length)
        .reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text)
    );
  }
}

export type SendOptions = Pick<Message, 'credentials' | 'connection' | 'key'>;

function headersWith({ token, bearer }: Credentials): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'User-Agent': 'blazar-enforcement',
    ...(token === undefined ? {} : { 'X-Auth-Token': token }),
    ...(bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` }),
  };
}

function shownHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const secret = (name: string) => name === 'X-Auth-Token' || name === 'Authorization';
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, secret(name) && value !== '' ? HIDDEN : value]),
  );
}
