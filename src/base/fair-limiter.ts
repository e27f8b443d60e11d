/** Shares a limit fairly: of items with owners, and of how much runs at the same time. */
import { addressBlock } from './addresses.ts';
import { ConcurrencyLimiter } from './concurrency-limiter.ts';
import type { Wait } from './deadline.ts';

/** A limited number of items with owners: no owner can take the share of others. */
export class FairShare<Item> {
  readonly #max: number;
  readonly #of = new Map<string, Set<Item>>();
  #size = 0;

  /** `max`: of all owners together. */
  constructor(max: number) {
    this.#max = max;
  }

  /** The items of one owner, oldest first. */
  of(identity: string): readonly Item[] {
    return [...(this.#of.get(identity) ?? [])];
  }

  /**
   * The owner that must give up an item before the identity gets one more: itself, one that has more, or
   * `undefined` if there is room. So an owner with more than a fair share loses items while others request
   * some.
   */
  givesWay(identity: string): string | undefined {
    if (this.#size < this.#max) {
      return undefined;
    }
    let most = identity;
    let count = (this.#of.get(identity)?.size ?? 0) + 1;
    for (const [other, { size }] of this.#of) {
      if (size > count) {
        [most, count] = [other, size];
      }
    }
    return most;
  }

  add(identity: string, item: Item): void {
    const own = this.#of.get(identity) ?? new Set<Item>();
    this.#of.set(identity, own);
    this.#size += own.has(item) ? 0 : 1;
    own.add(item);
  }

  delete(identity: string, item: Item): void {
    const own = this.#of.get(identity);
    if (own?.delete(item)) {
      this.#size -= 1;
      if (own.size === 0) {
        this.#of.delete(identity);
      }
    }
  }
}

/**
 * A limit on how much runs at the same time. If the queue is full, the client with most entries in it loses
 * its last one to another client.
 */
export class FairLimiter {
  readonly #limiter: ConcurrencyLimiter;
  /** The queue, by block of addresses. */
  readonly #waiting: FairShare<AbortController>;

  constructor(maxConcurrent: number, maxQueued: number) {
    this.#limiter = new ConcurrencyLimiter(maxConcurrent, maxQueued);
    this.#waiting = new FairShare(maxQueued);
  }

  /** As in `ConcurrencyLimiter`. `address`: of the client. */
  enter(wait: Wait, address: string): Promise<void> | undefined {
    const client = addressBlock(address);
    const giving = this.#waiting.givesWay(client);
    if (giving !== undefined && giving !== client) {
      for (const last of this.#waiting.of(giving).slice(-1)) {
        last.abort();
        this.#waiting.delete(giving, last);
      }
    }
    const place = new AbortController();
    const entering = this.#limiter.enter({
      // Made only for those who wait.
      get signal() {
        return AbortSignal.any(wait.signal === undefined ? [place.signal] : [wait.signal, place.signal]);
      },
      throwIfOver: () => wait.throwIfOver(),
    });
    if (entering !== undefined) {
      this.#waiting.add(client, place);
    }
    return entering?.finally(() => this.#waiting.delete(client, place));
  }

  /** Runs `work` between `enter` and `leave`. @throws OverloadedError */
  async run<Result>(wait: Wait, address: string, work: () => Promise<Result>): Promise<Result> {
    await this.enter(wait, address);
    try {
      return await work();
    } finally {
      this.leave();
    }
  }

  leave(): void {
    this.#limiter.leave();
  }
}
