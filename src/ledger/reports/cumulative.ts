/** How much of many shares is used by each of some times: work for each share does not grow with the number of times. */
import type { Amount } from '../../filter/amount.ts';
import { type Share, usedBefore } from './charges.ts';

export class Cumulative {
  readonly #times: readonly bigint[];
  /** Used by the time with this index and all later ones: `fixed + rate × time`. */
  readonly #fixed: Amount[];
  readonly #rates: Amount[];
  /** Used by this time alone. */
  readonly #single: Amount[];

  /** `times`: sorted, in seconds of the epoch. */
  constructor(times: readonly bigint[]) {
    this.#times = times;
    this.#fixed = times.map(() => 0n);
    this.#rates = times.map(() => 0n);
    this.#single = times.map(() => 0n);
  }

  add(share: Share): void {
    const { amount, from, until } = share;
    const begun = firstAtLeast(this.#times, from);
    const over = firstAtLeast(this.#times, until);
    const length = until - from;
    if (amount % length === 0n) {
      const rate = amount / length;
      this.#increase(begun, -rate * from, rate);
      this.#increase(over, rate * from + amount, -rate);
      return;
    }
    for (let index = begun; index < over; index += 1) {
      this.#single[index] = (this.#single[index] ?? 0n) + usedBefore(share, this.#times[index] ?? 0n);
    }
    this.#increase(over, amount, 0n);
  }

  /** For each time, in their order. */
  totals(): Amount[] {
    let fixed = 0n;
    let rate = 0n;
    return this.#times.map((time, index) => {
      fixed += this.#fixed[index] ?? 0n;
      rate += this.#rates[index] ?? 0n;
      return fixed + rate * time + (this.#single[index] ?? 0n);
    });
  }

  #increase(index: number, fixed: Amount, rate: Amount): void {
    if (index < this.#times.length) {
      this.#fixed[index] = (this.#fixed[index] ?? 0n) + fixed;
      this.#rates[index] = (this.#rates[index] ?? 0n) + rate;
    }
  }
}

/** The index of the first time that is not before `time`; their number if there is none. */
export function firstAtLeast(times: readonly bigint[], time: bigint): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0n) < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
