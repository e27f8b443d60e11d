import { setMaxListeners } from 'node:events';
import { codeOf } from '../base/errors.ts';
import { tracedCall } from '../base/trace-context.ts';
import type { Attempt, Guard, Transport } from './adapter.ts';
import { type Called, callError, HttpCallError, type HttpCallErrorCode } from './call-error.ts';
import type { HttpAnswer, HttpCallOptions, HttpClient, HttpClientOptions, HttpObserver } from './contract.ts';

/** Opens and loads nothing before the first call. @throws RangeError for an option out of range */
export function createHttpClient(options: HttpClientOptions, observer?: HttpObserver): HttpClient {
  checkOptions(options);
  return new PooledHttpClient(options, observer);
}

/** The maximum of a timer; longer ones would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** One call from its first attempt to its last. */
interface Call extends Attempt, Called {
  /** `undefined` = GET. */
  readonly json: string | undefined;
  /** Why it ended without an answer. It is then not retried. */
  ended: HttpCallError | undefined;
}

interface Origin {
  readonly transport: Transport;
  readonly guard: Guard;
}

type Adapter = typeof import('./adapter.ts');

// Loading it and its libraries takes longer than most commands, which make no calls.
let adapter: Promise<Adapter> | undefined;

class PooledHttpClient implements HttpClient {
  readonly #options: HttpClientOptions;
  readonly #timeoutMs: number;
  readonly #observer: HttpObserver | undefined;
  readonly #origins = new Map<string, Origin>();
  readonly #pending = new Set<(error: HttpCallError) => void>();
  #closed = false;

  constructor(options: HttpClientOptions, observer: HttpObserver | undefined) {
    this.#options = options;
    this.#observer = observer;
    this.#timeoutMs = Math.min(options.timeout * 1000, MAX_TIMER_MS);
  }

  postJson(address: string, json: string, options?: HttpCallOptions): Promise<HttpAnswer> {
    return this.#begin('POST', address, json, options);
  }

  get(address: string, options?: HttpCallOptions): Promise<HttpAnswer> {
    return this.#begin('GET', address, undefined, options);
  }

  #begin(
    method: Called['method'],
    address: string,
    json: string | undefined,
    { signal, answerHeaders, headers }: HttpCallOptions = {},
  ): Promise<HttpAnswer> {
    return tracedCall(
      { method, address, hidesPath: this.#options.hidesPath },
      // Not a spread: the signal of a deadline, or of a hook's call, is a getter of its class.
      (more) => this.#call(address, json, { signal, answerHeaders, headers: { ...headers, ...more } }),
      ({ status }) => status,
    );
  }

  #call(
    address: string,
    json: string | undefined,
    { signal, answerHeaders = [], headers = {} }: HttpCallOptions = {},
  ): Promise<HttpAnswer> {
    return new Promise<HttpAnswer>((resolve, reject) => {
      const url = parseAddress(address);
      const called: Called = { url, method: json === undefined ? 'GET' : 'POST' };
      if (this.#closed) {
        throw closedError();
      }
      if (signal?.aborted) {
        throw abortedError(called, signal);
      }
      const own: string[] = [];
      for (const [name, value] of Object.entries(headers)) {
        own.push(name, value);
      }
      const call: Call = {
        // Not after the spread: if a literal begins with one, V8 makes a hidden class for each member that
        // follows.
        json,
        ...called,
        answerHeaders,
        headers: own,
        sent: false,
        cancel: undefined,
        ended: undefined,
      };
      const started = performance.now();

      const release = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        this.#pending.delete(end);
      };
      const end = (error: HttpCallError) => {
        release();
        call.ended = error;
        if (call.cancel === undefined) {
          reject(error);
        } else {
          // Rejects through `#perform`: the circuit breaker counts it.
          call.cancel(error);
        }
      };
      const abort = () => end(abortedError(called, signal));
      const expire = () =>
        end(callError('timeout', called, `no whole answer within ${this.#options.timeout} s`));
      const timer = setTimeout(expire, this.#timeoutMs);
      this.#pending.add(end);
      if (signal !== undefined) {
        // One signal may serve many calls; above ten listeners Node would warn of a leak.
        setMaxListeners(0, signal);
        signal.addEventListener('abort', abort);
      }

      const observe = (outcome: number | HttpCallErrorCode) =>
        this.#observer?.called(url.origin, outcome, (performance.now() - started) / 1000);
      this.#perform(call).then(
        (answer) => {
          release();
          observe(answer.status);
          resolve(answer);
        },
        (thrown: unknown) => {
          release();
          const error =
            thrown instanceof HttpCallError ? thrown : callError('transport', called, 'not sent', thrown);
          observe(error.code);
          reject(error);
        },
      );
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const end of this.#pending) {
      end(closedError());
    }
    await Promise.all([...this.#origins.values()].map(({ transport }) => transport.close()));
  }

  async #perform(call: Call): Promise<HttpAnswer> {
    adapter ??= import('./adapter.ts');
    const { transport, guard } = this.#origin(call.url.origin, await adapter);
    const path = call.url.pathname + call.url.search;
    return guard(call, async () => {
      if (call.ended !== undefined) {
        throw call.ended;
      }
      try {
        return await transport.request(path, call.json, call);
      } catch (error) {
        throw call.ended ?? attemptError(call, error);
      }
    });
  }

  #origin(origin: string, loaded: Adapter): Origin {
    const known = this.#origins.get(origin);
    if (known !== undefined) {
      return known;
    }
    // Divides the time among the attempts, accurate to about a second, as undici's timers are.
    const connectTimeout = this.#timeoutMs / (this.#options.connectRetries + 1);
    const transport = loaded.createTransport(origin, this.#options, connectTimeout);
    const guard = loaded.createGuard(this.#options, (state) => this.#observer?.breakerChanged(origin, state));
    const opened = { transport, guard };
    this.#origins.set(origin, opened);
    return opened;
  }
}

function attemptError(call: Call, error: unknown): HttpCallError {
  if (!call.sent) {
    return callError('connect', call, 'nothing was sent', error);
  }
  const tooLarge = codeOf(error) === 'UND_ERR_RES_EXCEEDED_MAX_SIZE';
  return callError(tooLarge ? 'answer-too-large' : 'transport', call, 'no usable answer', error);
}

function abortedError(called: Called, signal: AbortSignal | undefined): HttpCallError {
  return callError('aborted', called, 'aborted by the caller', signal?.reason);
}

function closedError(): HttpCallError {
  return new HttpCallError('closed', 'the HTTP client was closed');
}

function parseAddress(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new HttpCallError('invalid-url', 'the address to call is not an http or https URL');
  }
  if (url.username !== '' || url.password !== '') {
    throw new HttpCallError(
      'invalid-url',
      `the address to call on ${url.origin} has a user name or password in it`,
    );
  }
  return url;
}

function checkOptions(options: HttpClientOptions): void {
  const { timeout, connectRetries, breakerFailures, breakerCooldown, maxAnswerBytes = 0 } = options;
  const check = (name: string, value: number, fits: boolean, expected: string) => {
    if (!fits) {
      throw new RangeError(`${name}: expected ${expected}, got ${value}`);
    }
  };
  check('timeout', timeout, timeout > 0, 'a number of seconds above 0');
  check('connectRetries', connectRetries, isCount(connectRetries), 'a whole number, 0 or more');
  check('breakerFailures', breakerFailures, isCount(breakerFailures), 'a whole number, 0 or more');
  check('breakerCooldown', breakerCooldown, breakerCooldown >= 0, 'a number of seconds, 0 or more');
  check('maxAnswerBytes', maxAnswerBytes, isCount(maxAnswerBytes), 'a whole number, 0 or more');
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
