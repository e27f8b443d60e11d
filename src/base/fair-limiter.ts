/** A limit on how much runs at the same time, whose queue clients share fairly. */
import { addressBlock } from './address-block.ts';
import { ConcurrencyLimiter } from './concurrency-limiter.ts';
import type { Wait } from './deadline.ts';
import { FairShare } from './fair-share.ts';

/** If the queue is full, the client with most entries in it loses its last one to another client. */
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
