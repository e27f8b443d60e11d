/** Keeps the claims of messages that are held back, while this process lives. */
import { outsideTraces } from '../../base/tracing.ts';

export class ClaimRenewal {
  readonly #every: number;
  readonly #keep: (ids: readonly bigint[]) => Promise<void>;
  readonly #ids = new Set<bigint>();
  #timer: NodeJS.Timeout | undefined;

  /** `every`: in milliseconds. A `keep` that fails is tried again: a claim that is lost refuses the lease. */
  constructor(every: number, keep: (ids: readonly bigint[]) => Promise<void>) {
    this.#every = every;
    this.#keep = keep;
  }

  add(id: bigint): void {
    this.#ids.add(id);
    this.#timer ??= setTimeout(() => this.#renew(), this.#every);
  }

  delete(id: bigint): void {
    this.#ids.delete(id);
    if (this.#ids.size === 0) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
  }

  #renew(): void {
    this.#timer = setTimeout(() => this.#renew(), this.#every);
    outsideTraces(() => this.#keep([...this.#ids])).catch(() => {});
  }
}
