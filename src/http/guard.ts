import {
  CircuitState,
  ConsecutiveBreaker,
  ConstantBackoff,
  circuitBreaker,
  DelegateBackoff,
  handleWhen,
  isBrokenCircuitError,
  retry,
} from 'cockatiel';
import { type Called, callError, type HttpCallError, hasCode } from './call-error.ts';
import type { BreakerState, HttpAnswer, HttpClientOptions } from './contract.ts';

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

/** A guard for one origin. Calls `breakerChanged` with its first state and with each following one. */
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
      // A trial that was aborted says nothing about the service: the next call is a trial again.
      halfOpenAfter: new DelegateBackoff(({ result }) =>
        'error' in result && result.error instanceof AbortedTrial ? 0 : options.breakerCooldown * 1000,
      ),
    },
  );
  breakerChanged('closed');
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
