import {
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  ConstantBackoff,
  circuitBreaker,
  DelegateBackoff,
  handleWhen,
  type IBreaker,
  isBrokenCircuitError,
  retry,
} from 'cockatiel';
import { type Called, callError, type HttpCallError, hasCode } from './call-error.ts';
import type { BreakerState, CallEvent, HttpAnswer, HttpClientOptions, JoinedBreaker } from './contract.ts';

/** Runs the tries of one call: retries after a failed connection, fails at once while the circuit breaker is open. */
export type Guard = (called: Called, attempt: () => Promise<HttpAnswer>) => Promise<HttpAnswer>;

/** A service that restarts is back after a moment. */
const RETRY_PAUSE_MS = 100;

const STATES: Readonly<Record<CircuitState, BreakerState>> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.HalfOpen]: 'half-open',
  [CircuitState.Open]: 'open',
  [CircuitState.Isolated]: 'open',
};

/** Joins a breaker to others that count together with it. */
export type Share = (heard: (event: CallEvent) => void) => JoinedBreaker;

/** A guard for one origin. Calls `breakerChanged` with its first state and with each following one. */
export function createGuard(
  options: HttpClientOptions,
  breakerChanged: (state: BreakerState) => void = () => {},
  share?: Share | undefined,
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

  const counted =
    share === undefined
      ? new ConsecutiveBreaker(options.breakerFailures)
      : new CountedTogether(options.breakerFailures, share, () => {
          if (breaker.state === CircuitState.Closed) {
            // A failure like any other, of a call that was not made: it opens the circuit.
            breaker.execute(() => Promise.reject(new Error('failed elsewhere'))).catch(() => {});
          }
        });
  const breaker: CircuitBreakerPolicy = circuitBreaker(
    handleWhen((error) => !isAborted(error)).orWhenResult((answer) => (answer as HttpAnswer).status >= 500),
    {
      breaker: counted,
      initialState: counted instanceof CountedTogether ? counted.opened : undefined,
      // A trial that was aborted says nothing about the service: the next call is a trial again.
      halfOpenAfter: new DelegateBackoff(({ result }) =>
        'error' in result && result.error instanceof AbortedTrial ? 0 : options.breakerCooldown * 1000,
      ),
    },
  );
  breakerChanged(STATES[breaker.state]);
  breaker.onStateChange((state) => breakerChanged(STATES[state]));
  return async (called, attempt) => {
    // cockatiel would make these wait for the trial, and nobody should wait for a dead service.
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

/** Failures in a row, wherever they are seen. */
class CountedTogether implements IBreaker {
  state = 0;
  readonly #limit: number;
  readonly #joined: JoinedBreaker;

  /** `reached`: called when others have seen the last of the failures. */
  constructor(limit: number, share: Share, reached: () => void) {
    this.#limit = limit;
    this.#joined = share((event) => {
      this.state = event === 'failed' ? this.state + 1 : 0;
      if (this.state >= limit) {
        reached();
      }
    });
    this.state = this.#joined.before?.count ?? 0;
  }

  /** A circuit that others have opened, for cockatiel. `undefined` = it is closed. */
  get opened(): object | undefined {
    const { before } = this.#joined;
    return before === undefined || before.count < this.#limit
      ? undefined
      : {
          ownState: { value: CircuitState.Open, openedAt: before.lastAt, attemptNo: 1 },
          breakerState: before.count,
        };
  }

  success(): void {
    if (this.state > 0) {
      this.state = 0;
      this.#joined.tell('succeeded');
    }
  }

  failure(): boolean {
    const isKnown = this.state >= this.#limit;
    this.state += 1;
    if (!isKnown) {
      this.#joined.tell('failed');
    }
    return this.state >= this.#limit;
  }
}

/** For cockatiel a trial that ends with an error that it does not handle is a success. It handles this one. */
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
