import { randomInt } from 'node:crypto';

/** Many more marks than names are allowed, so that few names share a mark. */
const MARKS = 2 ** 17;
/** Random in each process, so that nobody can construct names that share a mark. */
const SEED = randomInt(2 ** 32) | 1;

/** Counts different names in a text without keeping them. A few are mistaken for others. */
export class NameCount {
  readonly #marks = new Uint8Array(MARKS);
  #count = 0;

  /** `from` and `to`: the position of the name. Returns the number of different names so far. */
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
