import { EnforcementClosedError } from '../errors.ts';

/** Counts the calls that are not answered yet, so that closing can wait for them. */
export class CallsUnderWay {
  #count = 0;
  #isClosed = false;
  #lastEnded: (() => void) | undefined;

  /** Rejects with what the call throws, and with an `EnforcementClosedError` after `close()`. */
  run<Result>(call: () => Result | Promise<Result>): Promise<Result> {
    if (this.#isClosed) {
      return Promise.reject(new EnforcementClosedError());
    }
    this.#count += 1;
    // Not `async`: where every filter answers at once, this promise is all that a call costs here.
    try {
      const result = call();
      if (result instanceof Promise) {
        return this.#untilAnswered(result);
      }
      this.#ended();
      return Promise.resolve(result);
    } catch (thrown) {
      this.#ended();
      return Promise.reject(thrown);
    }
  }

  /** Accepts no further calls. Resolves when those under way have been answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#count > 0) {
      await new Promise<void>((resolve) => {
        this.#lastEnded = resolve;
      });
    }
  }

  async #untilAnswered<Result>(answer: Promise<Result>): Promise<Result> {
    try {
      return await answer;
    } finally {
      this.#ended();
    }
  }

  #ended(): void {
    this.#count -= 1;
    if (this.#count === 0) {
      this.#lastEnded?.();
    }
  }
}
