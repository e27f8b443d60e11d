/** Counts the messages of the outbox, for whoever reads the metrics: at most every few seconds, and never for long. */
import { inTime, withinDeadline } from '../../base/deadline.ts';
import type { OutboxCounts } from '../../ledger/outbox/reports.ts';
import type { ChainLedger } from '../../ledger/service.ts';

/** In milliseconds. */
const KEPT = 5000;
/** Reading the metrics must not wait longer for the ledger, in seconds. */
const PATIENCE = 2;

export class OutboxGauge {
  readonly #now: () => number;
  #ledger: ChainLedger | undefined;
  #readAt = 0;
  #counts: Promise<OutboxCounts | undefined> | undefined;

  /** `now`: in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** `undefined` when there is no outbox, or it does not answer. */
  read(ledger: ChainLedger | undefined): Promise<OutboxCounts | undefined> {
    if (this.#counts === undefined || ledger !== this.#ledger || this.#now() - this.#readAt >= KEPT) {
      this.#ledger = ledger;
      this.#readAt = this.#now();
      this.#counts = ledger === undefined ? Promise.resolve(undefined) : count(ledger);
    }
    return this.#counts;
  }
}

async function count(ledger: ChainLedger): Promise<OutboxCounts | undefined> {
  const { countOutbox } = await import('../../ledger/outbox/reports.ts');
  return withinDeadline(PATIENCE, async (deadline) => {
    try {
      return await inTime(
        ledger.read((opened) => countOutbox(opened, deadline)),
        deadline,
      );
    } catch {
      return undefined;
    }
  });
}
