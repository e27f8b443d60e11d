/** A text that is expensive to make and that anybody may ask for. */

/** How long it is kept, in milliseconds. Prometheus asks less often. */
const KEPT = 1000;

export class CachedText {
  readonly #make: () => Promise<Buffer>;
  readonly #now: () => number;
  #text: Promise<Buffer> | undefined;
  #until = 0;

  /** `now`: monotonic, in milliseconds. */
  constructor(make: () => Promise<Buffer>, now: () => number) {
    this.#make = make;
    this.#now = now;
  }

  /** Concurrent calls share the making of it, and later ones its result, for a second after it was made. A failure is not kept. */
  read(): Promise<Buffer> {
    if (this.#text === undefined || this.#now() >= this.#until) {
      // Until it is made: however long that takes, no second one is begun.
      this.#until = Number.POSITIVE_INFINITY;
      this.#text = this.#make().then(
        (text) => {
          this.#until = this.#now() + KEPT;
          return text;
        },
        (thrown: unknown) => {
          this.#text = undefined;
          throw thrown;
        },
      );
    }
    return this.#text;
  }
}
