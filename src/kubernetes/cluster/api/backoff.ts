/** Pauses after failures in a row: longer each time, and each of random length, so that replicas do not call all at once. */
export class Backoff {
  readonly #shortest: number;
  readonly #longest: number;
  #failures = 0;

  /** Milliseconds. */
  constructor(shortest: number, longest: number) {
    this.#shortest = shortest;
    this.#longest = longest;
  }

  reset(): void {
    this.#failures = 0;
  }

  /** The next pause: between the shortest and twice the one before at most. */
  next(): number {
    this.#failures += 1;
    const ceiling = Math.min(this.#longest, this.#shortest * 2 ** Math.min(this.#failures, 30));
    return this.#shortest + Math.random() * (ceiling - this.#shortest);
  }

  /** Ends early when the signal fires. */
  async wait(signal: AbortSignal): Promise<void> {
    if (signal.aborted) {
      return;
    }
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, this.next());
      signal.addEventListener('abort', done, { once: true });
    });
  }
}
