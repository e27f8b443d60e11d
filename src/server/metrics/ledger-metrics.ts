/** What is counted about the ledger's own work, and about messages to other services. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { DecisionQueueObserver } from '../../decisions/store/queue.ts';
import { EVENTS } from '../../enforcement/notifications/options.ts';
import type { LedgerOperation } from '../../ledger/observer.ts';
import type { OutboxCounts } from '../../ledger/outbox/reports.ts';
import { LedgerGauge } from './cached-text.ts';

export class LedgerMetrics {
  readonly #transactions: Counter<'operation' | 'outcome'>;
  readonly #seconds: Histogram<'operation'>;
  readonly #available: Gauge;
  readonly #inDoubt: Gauge;
  readonly #clockBehind: Gauge;

  /** `prefix` begins the names; `buckets` are in seconds. */
  constructor(registry: Registry, prefix: string, buckets: number[]) {
    const registers = [registry];
    this.#transactions = new Counter({
      name: `${prefix}ledger_transactions_total`,
      help: 'Transactions of the ledger: done, refused because of a limit, or failed.',
      labelNames: ['operation', 'outcome'],
      registers,
    });
    this.#seconds = new Histogram({
      name: `${prefix}ledger_transaction_duration_seconds`,
      help: 'Duration of ledger transactions, including waiting for others.',
      labelNames: ['operation'],
      buckets,
      registers,
    });
    this.#available = new Gauge({
      name: `${prefix}ledger_available`,
      help: 'Whether the last transaction of the ledger was completed: 1, or 0 if it failed. Absent before the first.',
      registers,
    });
    this.#inDoubt = new Gauge({
      name: `${prefix}ledger_commits_in_doubt`,
      help: 'Refused leases that may still be recorded, because the database did not answer. They stay charged until it does.',
      registers,
    });
    this.#clockBehind = new Gauge({
      name: `${prefix}ledger_clock_behind_seconds`,
      help: 'Seconds by which the clock of the ledger was behind the last entry of a project, at the last transaction; 0 if it was not.',
      registers,
    });
    for (const gauge of [this.#available, this.#inDoubt, this.#clockBehind]) {
      gauge.remove();
    }
  }

  transacted(operation: LedgerOperation, outcome: 'done' | 'refused' | 'failed', seconds: number): void {
    this.#transactions.inc({ operation, outcome });
    this.#seconds.observe({ operation }, seconds);
    this.#available.set(outcome === 'failed' ? 0 : 1);
  }

  inDoubt(commits: number): void {
    this.#inDoubt.set(commits);
  }

  clockBehind(seconds: number): void {
    this.#clockBehind.set(seconds);
  }

  /** The new configuration may have no ledger. */
  reloaded(): void {
    this.#available.remove();
  }
}

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

const ATTEMPTS = ['delivered', 'failed', 'dead'] as const;

export class OutboxMetrics {
  readonly #waiting: Gauge;
  readonly #oldest: Gauge;
  readonly #dead: Gauge;
  readonly #attempts: Counter<'outcome'>;
  readonly #dropped: Counter<'event'>;

  /** `prefix` begins the names. */
  constructor(registry: Registry, prefix: string) {
    const registers = [registry];
    this.#waiting = new Gauge({
      name: `${prefix}outbox_waiting`,
      help: 'Messages in the outbox that are not delivered yet. Counted at most every five seconds.',
      registers,
    });
    this.#oldest = new Gauge({
      name: `${prefix}outbox_oldest_seconds`,
      help: 'How long the oldest of them has waited; 0 if there is none.',
      registers,
    });
    this.#dead = new Gauge({
      name: `${prefix}outbox_dead`,
      help: 'Messages in the outbox that were not delivered in time, until an operator retries or discards them.',
      registers,
    });
    this.#attempts = new Counter({
      name: `${prefix}outbox_attempts_total`,
      help: 'Attempts of this process to deliver a message: delivered, failed, or dead, if it was the last.',
      labelNames: ['outcome'],
      registers,
    });
    this.#dropped = new Counter({
      name: `${prefix}notifications_dropped_total`,
      help: 'Events that are missing at webhook_url, because the ledger could not keep them, or a thousand are not delivered.',
      labelNames: ['event'],
      registers,
    });
    this.set(undefined);
    for (const outcome of ATTEMPTS) {
      this.#attempts.inc({ outcome }, 0);
    }
    for (const event of EVENTS.filter((one) => one !== 'budget.threshold')) {
      this.#dropped.inc({ event }, 0);
    }
  }

  attempted(outcome: (typeof ATTEMPTS)[number]): void {
    this.#attempts.inc({ outcome });
  }

  dropped(event: string): void {
    this.#dropped.inc({ event });
  }

  /** `undefined` = nobody has messages to deliver, or the ledger does not answer. */
  set(counts: OutboxCounts | undefined): void {
    const values = [
      [this.#waiting, counts?.waiting],
      [this.#oldest, counts?.oldestSeconds],
      [this.#dead, counts?.dead],
    ] as const;
    for (const [gauge, value] of values) {
      gauge.remove();
      if (value !== undefined) {
        gauge.set(value);
      }
    }
  }
}

/** In milliseconds. */
const KEPT = 5000;

export function createOutboxGauge(): LedgerGauge<undefined, OutboxCounts> {
  return new LedgerGauge(KEPT, async (opened, _, deadline) => {
    const { countOutbox } = await import('../../ledger/outbox/reports.ts');
    return countOutbox(opened, deadline);
  });
}
