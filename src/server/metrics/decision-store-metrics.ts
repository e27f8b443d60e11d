/** What is counted about decisions that are stored in the ledger. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { DecisionQueueObserver } from '../../decisions/store/queue.ts';

export class DecisionStoreMetrics implements DecisionQueueObserver {
  readonly #stored: Counter;
  readonly #dropped: Counter;
  readonly #errors: Counter;
  readonly #removed: Counter;

  /** `prefix` begins the names. `waiting` is read when the metrics are. */
  constructor(registry: Registry, prefix: string, waiting: (() => number) | undefined) {
    const registers = [registry];
    const counter = (name: string, help: string) =>
      new Counter({ name: `${prefix}decision_store_${name}`, help, registers });
    this.#stored = counter('stored_total', 'Decisions that this process has stored in the ledger.');
    this.#dropped = counter(
      'dropped_total',
      'Decisions that are missing from the ledger, because it could not be written in time.',
    );
    this.#errors = counter('errors_total', 'Failed attempts to store decisions; they are tried again.');
    this.#removed = counter(
      'removed_total',
      'Decisions that this process has removed from the ledger, by age or number.',
    );
    new Gauge({
      name: `${prefix}decision_store_waiting`,
      help: 'Decisions that are not stored yet.',
      registers,
      collect() {
        this.set(waiting?.() ?? 0);
      },
    });
  }

  stored(count: number): void {
    this.#stored.inc(count);
  }

  dropped(count: number): void {
    this.#dropped.inc(count);
  }

  failed(): void {
    this.#errors.inc();
  }

  removed(count: number): void {
    this.#removed.inc(count);
  }
}
