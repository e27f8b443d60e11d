/** Outboxes that deliver to a function, fast. */
import { randomUUID } from 'node:crypto';
import { onTestFinished, vi } from 'vitest';
import type { Call, Delivery, Outbox, OutboxMessage } from '../../src/index.ts';
import type { Backoff } from '../../src/ledger/outbox/backoff.ts';
import { ChainOutbox } from '../../src/ledger/outbox/chain-outbox.ts';
import { listOutbox, type OutboxReport } from '../../src/ledger/outbox/reports.ts';
import type { ChainLedger } from '../../src/ledger/service.ts';
import { NO_WAIT } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import type { LedgerFixture } from './fixture.ts';

export const SOON = { timeout: 120_000, interval: 5 };
export const DELIVERED: Delivery = { outcome: 'delivered' };
export const REFUSED: Delivery = { outcome: 'refused', error: 'got 500' };
export const AWAY: Delivery = { outcome: 'away', error: 'nobody there' };
export const NOT_SENT: Delivery = { outcome: 'not-sent', error: 'the breaker is open' };

/** Claims, and pauses of single messages, last until the clock of a test is moved. */
const FAST: Backoff = { firstPause: 2, longestPause: 10, poll: 5, claim: 15_000, atOnce: 4 };

type Deliver = (message: OutboxMessage, attempt: number) => Delivery | Promise<Delivery>;

export interface Sender {
  readonly name: string;
  readonly chain: ChainOutbox;
  readonly box: Outbox;
  readonly logger: ReturnType<typeof recordingLogger>;
  /** Every attempt, in order. */
  readonly attempts: OutboxMessage[];
  /** The bodies that were delivered, in order. */
  readonly delivered: string[];
  /** The most that were under way at once. */
  most(): number;
  /** What the next attempts come to. */
  deliver: Deliver;
  /** Adds a message about a lease. */
  end(id: string | undefined, body?: string): Promise<void>;
  /** Prepares one. */
  prepare(call: Call, id: string | undefined, body?: string): Promise<void>;
  list(): Promise<OutboxReport[]>;
}

export interface SenderOptions {
  readonly name?: string;
  readonly maxAge?: number;
  readonly pace?: Backoff;
  /** Default: that of the fixture. */
  readonly chain?: ChainLedger;
}

/** A sender of one test, which does not deliver before `chain.deliver()`. Another of the same name is another process. */
export async function newSender(
  fixture: LedgerFixture,
  {
    name = `sender-${randomUUID()}`,
    maxAge = 3600,
    pace = FAST,
    chain: ledger = fixture.chain,
  }: SenderOptions = {},
): Promise<Sender> {
  const logger = recordingLogger();
  const chain = new ChainOutbox({ ledger, logger, observer: undefined, pace });
  onTestFinished(() => chain.close());
  let underWay = 0;
  let most = 0;
  const tries = new Map<string, number>();
  const message = (id: string | undefined, body: string) => ({
    context: fixture.context(),
    lease: id === undefined ? {} : { id },
    body,
  });
  const box = await chain.open({
    name,
    maxAge,
    async deliver(sent) {
      underWay += 1;
      most = Math.max(most, underWay);
      sender.attempts.push(sent);
      const attempt = (tries.get(sent.key) ?? 0) + 1;
      tries.set(sent.key, attempt);
      try {
        const delivery = await sender.deliver(sent, attempt);
        if (delivery?.outcome === 'delivered') {
          sender.delivered.push(sent.body);
        }
        return delivery;
      } finally {
        underWay -= 1;
      }
    },
  });
  const sender: Sender = {
    name,
    chain,
    box,
    logger,
    attempts: [],
    delivered: [],
    most: () => most,
    deliver: () => DELIVERED,
    end: (id, body = id ?? '') => box.add(message(id, body), {}),
    prepare: (call, id, body = id ?? '') => box.prepare(message(id, body), call),
    async list() {
      const all = await listOutbox(fixture.ledger, { limit: 1000 }, NO_WAIT);
      return all.filter((one) => one.sender === name);
    },
  };
  return sender;
}

/** Waits until the outbox of a sender is empty. `ticking`: its clock goes on meanwhile, for messages that are tried again. */
export async function emptied(sender: Sender, ticking?: LedgerFixture): Promise<void> {
  await vi.waitFor(async () => {
    if (ticking !== undefined) {
      ticking.now = new Date(Date.parse(ticking.now) + 20).toISOString();
    }
    if ((await sender.list()).length > 0) {
      throw new Error('expected an empty outbox');
    }
  }, SOON);
}
