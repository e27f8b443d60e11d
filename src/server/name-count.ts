import { randomInt } from 'node:crypto';

/** Marks of names that have been there: many more than are let through. */
const MARKS = 2 ** 17;
/** Another one in each process, so that nobody can look for names that are taken for one. */
const SEED = randomInt(2 ** 32) | 1;

/** Counts the different names in a text without keeping them. Some few are taken for another one. */
export class NameCount {
  readonly #marks = new Uint8Array(MARKS);
  #count = 0;

  /** `from` and `to`: where the name stands. Returns how many there have been, with this one. */
  add(bytes: Uint8Array, from: number, to: number): number {
    let hash = SEED;
    for (let at = from; at < to; at += 1) {
      hash = Math.imul(hash ^ (bytes[at] ?? 0), 16_777_619);
    }
    const place = (hash ^ (hash >>> 15)) & (MARKS - 1);
    if (this.#marks[place] === 0) {
      this.#marks[place] = 1;
      this.#count += 1;
    }
    return this.#count;
  }
}
