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

/** Runs the tries of one call: again after a failed connection, not at all while the circuit breaker is open. */
export type Guard = (called: Called, attempt: () => Promise<HttpAnswer>) => Promise<HttpAnswer>;

/** A service that restarts is away for a moment. */
const RETRY_PAUSE_MS = 100;

const STATES: Readonly<Record<CircuitState, BreakerState>> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.HalfOpen]: 'half-open',
  [CircuitState.Open]: 'open',
  [CircuitState.Isolated]: 'open',
};

/** A guard for one origin. `breakerChanged` hears of the state that it starts with, and of each that follows. */
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
    handleWhen((error) => !isWithdrawn(error)).orWhenResult((answer) => (answer as HttpAnswer).status >= 500),
    {
      breaker: new ConsecutiveBreaker(options.breakerFailures),
      // A trial that was withdrawn told nothing: the next call is a trial again.
      halfOpenAfter: new DelegateBackoff(({ result }) =>
        'error' in result && result.error instanceof WithdrawnTrial ? 0 : options.breakerCooldown * 1000,
      ),
    },
  );
  breakerChanged('closed');
  breaker.onStateChange((state) => breakerChanged(STATES[state]));
  return async (called, attempt) => {
    // cockatiel would have these wait for the trial, and nobody should have to wait for a dead service.
    if (breaker.state === CircuitState.HalfOpen) {
      throw brokenError(called);
    }
    const trial = breaker.state === CircuitState.Open;
    try {
      return await breaker.execute(() =>
        trial ? retries.execute(attempt).catch(markWithdrawn) : retries.execute(attempt),
      );
    } catch (error) {
      if (isBrokenCircuitError(error)) {
        throw brokenError(called);
      }
      throw error instanceof WithdrawnTrial ? error.cause : error;
    }
  };
}

/** cockatiel takes a trial that ends with an error it does not handle for a success; this one it does handle. */
class WithdrawnTrial extends Error {}

function markWithdrawn(error: unknown): never {
  throw isWithdrawn(error) ? new WithdrawnTrial('', { cause: error }) : error;
}

function isWithdrawn(error: unknown): boolean {
  return hasCode(error, 'aborted') || hasCode(error, 'closed');
}

function brokenError(called: Called): HttpCallError {
  return callError('breaker-open', called, 'not tried, since the calls before it failed');
}
