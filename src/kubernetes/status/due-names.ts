/** Names of which something is to be done, now or later. In order, so that a busy one keeps no other waiting. */
export class DueNames {
  readonly #at = new Map<string, number>();

  /** As soon as possible, behind those that wait already. */
  add(name: string): void {
    const at = this.#at.get(name);
    if (at === undefined || at > 0) {
      this.#at.delete(name);
      this.#at.set(name, 0);
    }
  }

  /** Not before a time, unless it is due earlier for another reason. */
  addAt(name: string, at: number): void {
    this.#at.set(name, Math.min(at, this.#at.get(name) ?? at));
  }

  /** The first that is due; it is removed. */
  take(now: number): string | undefined {
    for (const [name, at] of this.#at) {
      if (at <= now) {
        this.#at.delete(name);
        return name;
      }
    }
    return undefined;
  }

  /** When the next one is due; `undefined` = there is none. */
  get next(): number | undefined {
    let next: number | undefined;
    for (const at of this.#at.values()) {
      next = next === undefined || at < next ? at : next;
    }
    return next;
  }

  clear(): void {
    this.#at.clear();
  }
}
