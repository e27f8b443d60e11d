/** A bounded number of items, such as sessions, shared fairly: no user can use up what others need. */

/** Items by the identity that has them, each list oldest first. */
export class FairShare<Item> {
  readonly #max: number;
  readonly #of = new Map<string, Set<Item>>();
  #size = 0;

  /** `max`: of all identities together. */
  constructor(max: number) {
    this.#max = max;
  }

  /** Of one identity, oldest first. */
  of(identity: string): readonly Item[] {
    return [...(this.#of.get(identity) ?? [])];
  }

  /**
   * Who must give way before the identity gets one more: itself, somebody who has more, or `undefined` if there is room. Whoever has
   * more than others has more than a fair share: as long as the others ask for room, it goes to them.
   */
  givesWay(identity: string): string | undefined {
    if (this.#size < this.#max) {
      return undefined;
    }
    let [most, count] = [identity, (this.#of.get(identity)?.size ?? 0) + 1];
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
