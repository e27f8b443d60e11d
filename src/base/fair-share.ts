/** A limited number of items with owners: no owner can take the share of others. */

/** Items by owner, each list oldest first. */
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
