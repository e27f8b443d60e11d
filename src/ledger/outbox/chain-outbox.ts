/**
 * The outbox of a chain of filters: opens with the first filter that needs it; delivers only after `deliver`.
 */
import { inTime, type Wait, waitFor } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { EndMessage, Outbox, OutboxSender, OutboxService } from '../../filter/outbox.ts';
import { type Call, waitOf } from '../../filter/verdict.ts';
import type { ChainLedger } from '../service.ts';
import type { LedgerObserver } from '../transactions/transaction.ts';
import { BACKOFF, type Backoff } from './backoff.ts';

type DeliveryQueue = import('./delivery-queue.ts').DeliveryQueue;
type OutboxStore = import('./store.ts').OutboxStore;

interface ChainOutboxParts {
  readonly ledger: ChainLedger;
  readonly logger: Logger;
  readonly observer: LedgerObserver | undefined;
  /** Default: `BACKOFF`. */
  readonly pace?: Backoff | undefined;
}

interface Sending {
  /** The name of the filter. */
  readonly name: string;
  readonly store: OutboxStore;
  readonly queue: DeliveryQueue;
}

/** A message that is held until the chain has decided. */
interface Prepared {
  readonly sender: string;
  readonly store: OutboxStore;
  /** The id of the row; rejects if the row could not be written. */
  readonly row: Promise<bigint | undefined>;
  /** `sent`: released, or replaced by a new message. `owed`: must be sent, but is not released yet. */
  status: 'open' | 'owed' | 'sent';
}

/** Time limit for running deliveries at a stop, in milliseconds. */
const PATIENCE = 1000;
/** Retry interval while a prepared message cannot be removed or released, in milliseconds. */
const AGAIN = 1000;

export class ChainOutbox implements OutboxService {
  readonly #parts: ChainOutboxParts;
  readonly #senders = new Map<string, Sending>();
  readonly #commits = new WeakMap<Call, Prepared[]>();
  readonly #settling = new Set<Promise<void>>();
  #isDelivering = false;
  #isClosing = false;

  constructor(parts: ChainOutboxParts) {
    this.#parts = parts;
  }

  get isUsed(): boolean {
    return this.#senders.size > 0;
  }

  isSender(name: string): boolean {
    return this.#senders.has(name);
  }

  async open(sender: OutboxSender): Promise<Outbox> {
    const { ledger, logger, observer, pace: backoff = BACKOFF } = this.#parts;
    await ledger.open();
    const [{ OutboxStore }, { DeliveryQueue }] = await Promise.all([
      import('./store.ts'),
      import('./delivery-queue.ts'),
    ]);
    const { name } = sender;
    const store = new OutboxStore(name, () => ledger.ledger(waitFor(undefined)), backoff, {
      take: (messages) => queue.take(messages),
      handOver: () => queue.handOver(),
      putBack: (settled) => queue.putBack(settled),
    });
    const queue: DeliveryQueue = new DeliveryQueue({
      sender,
      store,
      backoff,
      logger,
      observer,
      now: () => ledger.now(),
    });
    await store.verify();
    const sending = { name, store, queue };
    this.#senders.set(name, sending);
    if (this.#isDelivering) {
      queue.start();
    }
    return {
      add: (message, call) => this.#add(sending, message, call),
      prepare: (message, call) => this.#prepare(sending, message, call),
    };
  }

  /** To be called after another transaction has written a message of the sender. */
  wake(sender: string): void {
    this.#senders.get(sender)?.queue.wake();
  }

  /** Starts delivering. For serving processes. */
  deliver(): void {
    this.#isDelivering = true;
    for (const { queue } of this.#senders.values()) {
      queue.start();
    }
  }

  /** Stops delivering; the next process delivers the rest. Messages can still be added. Never rejects. */
  async stop(): Promise<void> {
    await Promise.all([...this.#senders.values()].map(({ queue }) => queue.stop(PATIENCE)));
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#settling);
    await Promise.all([...this.#senders.values()].map(({ store }) => store.settled()));
    await this.stop();
  }

  /** To be called before commit hooks if only this request recorded the lease: messages are then prepared. */
  beginCommit(call: Call): void {
    if (this.isUsed) {
      this.#commits.set(call, []);
    }
  }

  /**
   * The lease is granted: removes prepared messages. If it throws, removal failed or a message was sent:
   * refuse the lease.
   */
  async confirm(call: Call, wait: Wait): Promise<void> {
    for (const prepared of this.#commits.get(call) ?? []) {
      const row = await inTime(prepared.row, wait);
      if (row !== undefined && !(await inTime(prepared.store.remove(row), wait))) {
        throw new Error('the end of the lease has been sent already');
      }
    }
    this.#commits.delete(call);
  }

  /** No undo can follow: removes or releases prepared messages, with retries until it succeeds. */
  forget(call: Call): void {
    for (const prepared of this.#commits.get(call) ?? []) {
      if (prepared.status !== 'sent') {
        const settled = this.#settleAtLast(prepared);
        this.#settling.add(settled);
        void settled.then(() => this.#settling.delete(settled));
      }
    }
    this.#commits.delete(call);
  }

  async #settleAtLast({ row, store, sender, status }: Prepared): Promise<void> {
    const id = await row.catch(() => undefined);
    for (let isLogged = false; id !== undefined; isLogged = true) {
      try {
        await (status === 'owed' ? store.release(id) : store.remove(id));
        this.#senders.get(sender)?.queue.wake();
        return;
      } catch (thrown) {
        if (!isLogged) {
          this.#parts.logger.error(
            { filter: sender, message: String(id), error: errorText(thrown) },
            status === 'owed'
              ? 'a message in the outbox cannot be released yet: it is sent when that succeeds'
              : 'a message in the outbox is void and cannot be removed: it is sent unless that succeeds',
          );
        }
        if (this.#isClosing) {
          // Its claim expires after this process, and it is sent.
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, AGAIN));
      }
    }
  }

  async #add({ name, store, queue }: Sending, message: EndMessage, call: Call): Promise<void> {
    const wait = waitOf(call);
    const prepared = this.#commits.get(call.undoes ?? call)?.find(({ sender }) => sender === name);
    if (prepared !== undefined) {
      // From now on it must not be removed, even if releasing it fails or takes too long.
      prepared.status = 'owed';
      if (await this.#release(prepared, wait)) {
        queue.wake();
        return;
      }
    }
    const isTaken = queue.hasTime;
    await store.add(message, call, wait, isTaken);
    if (prepared !== undefined) {
      prepared.status = 'sent';
    }
    if (!isTaken) {
      queue.wake();
    }
  }

  /** Whether the prepared message still existed and is now released. */
  async #release(prepared: Prepared, wait: Wait): Promise<boolean> {
    const row = await inTime(prepared.row, wait).catch(() => undefined);
    if (row === undefined || !(await inTime(prepared.store.release(row), wait))) {
      return false;
    }
    prepared.status = 'sent';
    return true;
  }

  async #prepare({ name, store, queue }: Sending, message: EndMessage, call: Call): Promise<void> {
    const commit = this.#commits.get(call);
    const row = store.prepare(message, call, waitOf(call), commit !== undefined);
    commit?.push({ sender: name, store, row, status: 'open' });
    queue.wake();
    await row;
  }
}
