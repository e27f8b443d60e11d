/** What is counted about messages to other services. */
import { Counter, Gauge, type Registry } from 'prom-client';
import { EVENTS } from '../../enforcement/notifications/options.ts';
import type { OutboxCounts } from '../../ledger/outbox/reports.ts';
import { LedgerGauge } from './cached-text.ts';

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
