/** Remembers for a short while when something changed, by name. */

/** Longer than any answer is kept. */
const KEPT_MILLISECONDS = 15_000;
/** With more changes than these at once, everything counts as changed. */
const MOST = 10_000;

export class RecentChanges {
  /** In the order of their times. */
  readonly #times = new Map<string, number>();
  readonly #most: number;
  #everythingAt = Number.NEGATIVE_INFINITY;

  constructor(most = MOST) {
    this.#most = most;
  }

  get size(): number {
    return this.#times.size;
  }

  /** `now`: never before the time of an earlier call. */
  add(name: string, now: number): void {
    this.#times.delete(name);
    this.#times.set(name, now);
    for (const [old, at] of this.#times) {
      if (at > now - KEPT_MILLISECONDS) {
        break;
      }
      this.#times.delete(old);
    }
    if (this.#times.size > this.#most) {
      this.#times.clear();
      this.#everythingAt = now;
    }
  }

  /** When one of these names changed last; `-Infinity` = not lately. */
  latest(names: Iterable<string>): number {
    let latest = this.#everythingAt;
    for (const name of names) {
      latest = Math.max(latest, this.#times.get(name) ?? latest);
    }
    return latest;
  }
}
