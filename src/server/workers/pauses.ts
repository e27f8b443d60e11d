/** How long to wait before a worker is started again. */

/** A worker that has lived so long has not ended because of its start, in milliseconds. */
const LONG_LIFE = 60_000;
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 30_000;

/** One that ends at once, again and again, is started ever more rarely. */
export class Pauses {
  #early = 0;

  /** `livedMs`: how long the one before has lived. In milliseconds. */
  after(livedMs: number): number {
    this.#early = livedMs >= LONG_LIFE ? 1 : this.#early + 1;
    return Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (this.#early - 1));
  }
}
