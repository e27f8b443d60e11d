/**
 * Delivers the messages of one sender: claims the oldest due messages, sends a few at a time, and records the
 * outcomes of many in one transaction. If the process ends before an outcome is recorded, the message is
 * delivered again.
 */
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { onOneLine } from '../../base/visible-text.ts';
import type { Delivery, OutboxSender } from '../../filter/outbox.ts';
import type { LedgerObserver } from '../transactions/transaction.ts';
import { type Backoff, Pause, pauseAfter, ServicePauses } from './backoff.ts';
import type { ClaimedMessage, Settlement } from './statements.ts';
import type { NewMessages, OutboxStore } from './store.ts';

interface DeliveryQueueParts {
  readonly sender: OutboxSender;
  readonly store: Pick<OutboxStore, 'round' | 'bodyOf' | 'expire'>;
  readonly backoff: Backoff;
  readonly logger: Logger;
  readonly observer: LedgerObserver | undefined;
  /** Microseconds of the epoch. */
  readonly now: () => bigint;
}

/** Maximum number of claimed messages, and the queue length at which more are claimed. */
const CLAIMED = 64;
const LOW = 16;
/** Outcomes are recorded within this time, in milliseconds, if no other transaction records them earlier. */
const RECORDED_WITHIN = 200;
/** This many consecutive failures are attributed to the service, not to single messages. */
const IN_A_ROW = 3;
/** A message with this many attempts backs off on its own, even if the service seems to be down. */
const OFTEN = 30n;
/** Longest pause while the database fails, in milliseconds. */
const LONGEST_DATABASE_PAUSE = 30_000;

export class DeliveryQueue implements NewMessages {
  readonly #parts: DeliveryQueueParts;
  readonly #queue: ClaimedMessage[] = [];
  readonly #underWay = new Map<bigint, Promise<void>>();
  readonly #settled: Settlement[] = [];
  readonly #rest = new Pause();
  readonly #aborting = new AbortController();
  readonly #pauses: ServicePauses;
  #renewedAt = 0;
  #databaseFailures = 0;
  #isStopping = false;
  /** Whether the last round left no messages to claim. */
  #hasAll = false;
  #running: Promise<void> | undefined;

  constructor(parts: DeliveryQueueParts) {
    this.#parts = parts;
    this.#pauses = new ServicePauses(parts.backoff);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Whether a new message would be delivered next: no others wait, and the service accepts messages. */
  get hasTime(): boolean {
    const isDelivering = this.#running !== undefined && !this.#isStopping;
    const isWell = !this.#pauses.isFailing && this.#databaseFailures === 0;
    return isDelivering && isWell && this.#hasAll && this.#claimed < CLAIMED;
  }

  take(messages: readonly ClaimedMessage[]): void {
    this.#queue.push(...messages);
    if (this.#isStopping) {
      void this.#finish();
    } else if (this.#pauses.left > 0) {
      this.#releaseQueue();
    }
    this.#deliver();
  }

  handOver(): readonly Settlement[] {
    return this.#settled.splice(0);
  }

  putBack(settled: readonly Settlement[]): void {
    this.#settled.unshift(...settled);
  }

  /** To be called when there is a new message. */
  wake(): void {
    this.#rest.end();
  }

  /** Stops, waits `graceMs` milliseconds for running attempts, and releases its claims. Never rejects. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true;
    const timer = setTimeout(() => this.#aborting.abort(new Error('the service stops')), graceMs);
    this.#rest.end();
    await this.#running;
    clearTimeout(timer);
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      await this.#round();
      this.#deliver();
      await this.#rest.take(this.#restTime());
    }
    await Promise.all(this.#underWay.values());
    await this.#giveBack();
  }

  /** For messages that were being written while the queue stopped. */
  async #finish(): Promise<void> {
    await this.#running;
    await this.#giveBack();
  }

  async #giveBack(): Promise<void> {
    this.#releaseQueue();
    if (this.#settled.length > 0) {
      await this.#record(0);
    }
  }

  async #round(): Promise<void> {
    const isPaused = this.#pauses.left > 0;
    const room = this.#pauses.isFailing ? 1 - this.#claimed : CLAIMED - this.#claimed;
    const wanted = isPaused || this.#queue.length > LOW ? 0 : Math.max(0, room);
    const mustRenew = this.#claimed > 0 && this.#sinceRenewed() > this.#parts.backoff.claim / 5;
    if (wanted === 0 && this.#settled.length === 0 && !mustRenew) {
      return;
    }
    const claimed = await this.#record(wanted);
    if (claimed !== undefined && this.#databaseFailures > 0) {
      this.#databaseFailures = 0;
      this.#parts.logger.info({ filter: this.#parts.sender.name }, 'the outbox can be used again');
    }
    if (wanted > 0) {
      this.#hasAll = claimed !== undefined && claimed.length < wanted;
    }
    this.#queue.push(...(claimed ?? []));
  }

  /** `undefined` = the database failed, and nothing has changed. */
  async #record(count: number): Promise<ClaimedMessage[] | undefined> {
    const { store, sender, logger } = this.#parts;
    const settled = this.handOver();
    const kept = [...this.#underWay.keys(), ...this.#queue.map(({ id }) => id)];
    const began = performance.now();
    try {
      const claimed = await store.round(settled, kept, {
        count,
        first: this.#pauses.isFailing ? 'longest-due' : 'oldest',
      });
      this.#renewedAt = began;
      return claimed;
    } catch (thrown) {
      this.putBack(settled);
      this.#databaseFailures += 1;
      if (this.#databaseFailures === 1) {
        logger.error(
          { filter: sender.name, error: errorText(thrown) },
          'the outbox cannot be used: nothing is delivered until it can',
        );
      }
      return undefined;
    }
  }

  #deliver(): void {
    const { atOnce, claim } = this.#parts.backoff;
    // Others may have taken over the claims.
    if (this.#queue.length > 0 && this.#sinceRenewed() > claim * 0.8) {
      this.#queue.length = 0;
    }
    const most = this.#pauses.failures > 0 ? 1 : atOnce;
    while (!this.#isStopping && this.#pauses.left === 0 && this.#underWay.size < most) {
      const message = this.#queue.shift();
      if (message === undefined) {
        return;
      }
      this.#underWay.set(message.id, this.#attempt(message));
    }
  }

  async #attempt(message: ClaimedMessage): Promise<void> {
    const { id } = message;
    const delivery = await this.#tried(message);
    this.#underWay.delete(id);
    this.#judge(message, delivery);
    this.#deliver();
    // Not after each message: a transaction takes longer than a delivery.
    const needsMore = !this.#hasAll && (this.#queue.length === LOW || this.#underWay.size === 0);
    if (needsMore || this.#settled.length >= CLAIMED || this.#pauses.left > 0) {
      this.#rest.end();
    }
  }

  async #tried({ id, key, body }: ClaimedMessage): Promise<Delivery> {
    const { store, sender } = this.#parts;
    try {
      const message = { key, body: body ?? (await store.bodyOf(id)) };
      const delivery: Delivery | undefined = await sender.deliver(message, this.#aborting.signal);
      if (delivery === undefined) {
        throw new TypeError('deliver returned nothing');
      }
      return delivery;
    } catch (thrown) {
      return { outcome: 'refused', error: errorText(thrown) };
    }
  }

  #judge(message: ClaimedMessage, delivery: Delivery): void {
    const { id, attempts } = message;
    const { observer, backoff } = this.#parts;
    if (delivery.outcome === 'delivered') {
      this.#settled.push({ kind: 'delivered', id });
      observer?.attempted?.('delivered');
      this.#serves();
      return;
    }
    const { outcome } = delivery;
    // PostgreSQL stores no NUL: no outcome could be recorded any more.
    const error = onOneLine(delivery.error);
    if (outcome === 'not-sent') {
      this.#settled.push({ kind: 'released', id });
      if (!this.#isStopping) {
        this.#pause(undefined, error);
      }
      return;
    }
    this.#pauses.failed();
    // While a service is down its messages stay due, so that the oldest comes first when it is back.
    const hasItsOwnPause = outcome === 'refused' || attempts >= OFTEN;
    const own = hasItsOwnPause
      ? BigInt(Math.round(pauseAfter(Number(attempts) + 1, backoff) * 1000))
      : undefined;
    this.#fail(message, { ...delivery, error }, own);
    if (outcome === 'away' || this.#pauses.failures >= IN_A_ROW) {
      this.#pause(delivery.outcome === 'away' ? delivery.retryAfter : undefined, error);
    }
  }

  #fail(
    { id, lease_id, attempts, expires_from }: ClaimedMessage,
    { error, ...delivery }: Exclude<Delivery, { outcome: 'delivered' }>,
    pause: bigint | undefined,
  ): void {
    const { observer, now, sender, logger } = this.#parts;
    const at = now();
    const isDead = at - expires_from >= microseconds(sender.maxAge);
    observer?.attempted?.(isDead ? 'dead' : 'failed');
    const nextAt = pause === undefined ? 0n : at + pause;
    const rest = delivery.outcome === 'refused' ? delivery.rest : undefined;
    const kind = isDead ? 'dead' : 'failed';
    this.#settled.push({ kind, id, at, nextAt, error, expiresFrom: expires_from, rest });
    if (isDead) {
      logger.error(
        { filter: sender.name, message: String(id), lease_id, attempts: Number(attempts) + 1, error },
        'a message to an external service is dead: it was not delivered in time; see blazar-enforcement outbox list',
      );
    }
  }

  #serves(): void {
    if (this.#pauses.served()) {
      this.#parts.logger.info({ filter: this.#parts.sender.name }, 'messages are delivered again');
    }
  }

  #pause(retryAfter: number | undefined, error: string): void {
    const { sender, logger } = this.#parts;
    const inARow = this.#pauses.begin(retryAfter);
    if (inARow === undefined) {
      return;
    }
    if (inARow === 1) {
      logger.warn({ filter: sender.name, error }, 'messages wait: the external service does not accept them');
    }
    this.#releaseQueue();
    if (inARow >= IN_A_ROW) {
      void this.#expire(error);
    }
    this.#rest.end();
  }

  async #expire(error: string): Promise<void> {
    const { store, now, sender, logger, observer } = this.#parts;
    // Messages that could not be marked now are marked after the next failure.
    const dead = await store.expire(now() - microseconds(sender.maxAge), error).catch(() => 0);
    if (dead > 0) {
      for (let one = 0; one < dead; one += 1) {
        observer?.attempted?.('dead');
      }
      logger.error(
        { filter: sender.name, messages: dead, error },
        'messages to an external service are dead: they were not delivered in time; see blazar-enforcement outbox list',
      );
    }
  }

  #releaseQueue(): void {
    for (const { id } of this.#queue.splice(0)) {
      this.#settled.push({ kind: 'released', id });
    }
  }

  get #claimed(): number {
    return this.#queue.length + this.#underWay.size;
  }

  #sinceRenewed(): number {
    return performance.now() - this.#renewedAt;
  }

  /** Time until the next round, in milliseconds. */
  #restTime(): number {
    const { poll, claim } = this.#parts.backoff;
    if (this.#databaseFailures > 0) {
      return Math.min(poll * 2 ** Math.min(this.#databaseFailures, 20), LONGEST_DATABASE_PAUSE);
    }
    const renewed = this.#claimed > 0 ? claim / 5 : Number.POSITIVE_INFINITY;
    const paused = this.#pauses.left;
    if (paused > 0) {
      return this.#settled.length > 0 ? 0 : Math.min(paused, renewed);
    }
    return Math.min(poll, renewed, this.#settled.length > 0 ? RECORDED_WITHIN : poll);
  }
}

function microseconds(seconds: number): bigint {
  return BigInt(Math.round(seconds * 1_000_000));
}
