/** What is counted about calls to other services. */
import { STATUS_CODES } from 'node:http';
import { Gauge, Histogram, type Registry } from 'prom-client';
import type { BreakerState } from '../../http/contract.ts';

const BREAKER_STATES: Readonly<Record<BreakerState, number>> = { closed: 0, 'half-open': 1, open: 2 };

export class CallMetrics {
  readonly #seconds: Histogram<'origin' | 'outcome'>;
  readonly #breakers: Gauge<'origin'>;

  /** `prefix` begins the names; `buckets` are in seconds. */
  constructor(registry: Registry, prefix: string, buckets: number[]) {
    const registers = [registry];
    this.#seconds = new Histogram({
      name: `${prefix}external_call_duration_seconds`,
      help: 'Duration of calls to other services, by response status or kind of failure.',
      labelNames: ['origin', 'outcome'],
      buckets,
      registers,
    });
    this.#breakers = new Gauge({
      name: `${prefix}external_breaker_state`,
      help: 'State of the circuit breaker of another service: 0 closed (calls pass), 1 half-open (one is tried), 2 open (no calls).',
      labelNames: ['origin'],
      registers,
    });
  }

  /** An unknown status is `other`: a text of the called service must not become a label. */
  called(origin: string, outcome: number | string, seconds: number): void {
    const known = typeof outcome === 'string' || outcome in STATUS_CODES ? outcome : 'other';
    this.#seconds.observe({ origin, outcome: known }, seconds);
  }

  breakerChanged(origin: string, state: BreakerState): void {
    this.#breakers.set({ origin }, BREAKER_STATES[state]);
  }

  /** The new filters have breakers of their own, and nothing would ever reset the old ones. */
  reloaded(): void {
    this.#breakers.reset();
  }
}
