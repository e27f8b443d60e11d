/** Metrics of the ledger, of messages to other services, and of stored decisions. */
import type { DecisionQueueObserver } from '../../decisions/store/queue.ts';
import { EVENTS } from '../../enforcement/notifications/options.ts';
import type { OutboxCounts } from '../../ledger/outbox/reports.ts';
import type { ChainLedger } from '../../ledger/service.ts';
import type { LedgerObserver } from '../../ledger/transactions/transaction.ts';
import { Cached, readLedger } from './cached.ts';
import { type Instruments, setOrRemove } from './instruments.ts';

const ATTEMPTS = ['delivered', 'failed', 'dead'] as const;

/** `buckets` are in seconds. */
export function ledgerMetrics(make: Instruments, buckets: readonly number[]) {
  const transactions = make.counter(
    'ledger_transactions_total',
    'Transactions of the ledger: done, refused because of a limit, or failed.',
    ['operation', 'outcome'],
  );
  const durations = make.histogram(
    'ledger_transaction_duration_seconds',
    'Duration of ledger transactions, including waiting for others.',
    ['operation'],
    buckets,
  );
  const available = make.gauge(
    'ledger_available',
    'Whether the last transaction of the ledger was completed: 1, or 0 if it failed. Absent before the first.',
  );
  const inDoubt = make.gauge(
    'ledger_commits_in_doubt',
    'Refused leases that may still be recorded, because the database did not answer. They stay charged until it does.',
  );
  const clockBehind = make.gauge(
    'ledger_clock_behind_seconds',
    'Seconds by which the clock of the ledger was behind the last entry of a project, at the last transaction; 0 if it was not.',
  );
  const waiting = make.gauge(
    'outbox_waiting',
    'Messages in the outbox that are not delivered yet. Counted at most every five seconds.',
  );
  const oldest = make.gauge(
    'outbox_oldest_seconds',
    'How long the oldest of them has waited; 0 if there is none.',
  );
  const dead = make.gauge(
    'outbox_dead',
    'Messages in the outbox that were not delivered in time, until an operator retries or discards them.',
  );
  const attempts = make.counter(
    'outbox_attempts_total',
    'Attempts of this process to deliver a message: delivered, failed, or dead, if it was the last.',
    { outcome: ATTEMPTS },
  );
  const dropped = make.counter(
    'notifications_dropped_total',
    'Events that are missing at webhook_url, because the ledger could not keep them, or a thousand are not delivered.',
    { event: EVENTS.filter((one) => one !== 'budget.threshold') },
  );
  for (const gauge of [available, inDoubt, clockBehind, waiting, oldest, dead]) {
    gauge.remove();
  }
  const observer: Required<LedgerObserver> = {
    transacted: (operation, outcome, seconds) => {
      transactions.inc({ operation, outcome });
      durations.observe({ operation }, seconds);
      available.set(outcome === 'failed' ? 0 : 1);
    },
    inDoubt: (commits) => inDoubt.set(commits),
    clockBehind: (seconds) => clockBehind.set(seconds),
    attempted: (outcome) => attempts.inc({ outcome }),
    noticeDropped: (event) => dropped.inc({ event }),
  };
  return {
    ...observer,
    /** `undefined` = no messages are to be delivered, or the ledger does not answer. */
    showOutbox: (counts: OutboxCounts | undefined) => {
      setOrRemove(waiting, counts?.waiting);
      setOrRemove(oldest, counts?.oldestSeconds);
      setOrRemove(dead, counts?.dead);
    },
    /** The new configuration may have no ledger. */
    reloaded: () => available.remove(),
  };
}

/** `waiting` is read with the metrics. */
export function decisionStoreMetrics(
  all: Instruments,
  waiting: (() => number) | undefined,
): DecisionQueueObserver {
  const make = all.of('decision_store_');
  const stored = make.counter('stored_total', 'Decisions that this process has stored in the ledger.');
  const dropped = make.counter(
    'dropped_total',
    'Decisions that are missing from the ledger, because it could not be written in time.',
  );
  const errors = make.counter('errors_total', 'Failed attempts to store decisions; they are tried again.');
  const removed = make.counter(
    'removed_total',
    'Decisions that this process has removed from the ledger, by age or number.',
  );
  make.reading('waiting', 'Decisions that are not stored yet.', () => waiting?.() ?? 0);
  return {
    stored: (count) => stored.inc(count),
    dropped: (count) => dropped.inc(count),
    failed: () => errors.inc(),
    removed: (count) => removed.inc(count),
  };
}

/** In milliseconds. */
const KEPT = 5000;

export function createOutboxGauge() {
  const read = (ledger: ChainLedger | undefined) =>
    readLedger(ledger, async (opened, deadline) => {
      const { countOutbox } = await import('../../ledger/outbox/reports.ts');
      return countOutbox(opened, deadline);
    });
  return new Cached(KEPT, read);
}
