/** A pause that can be ended, also before it begins. */
export class Rest {
  #isOver = false;
  #end: (() => void) | undefined;

  /** Resolves after so many milliseconds, or at `end`. */
  async take(milliseconds: number): Promise<void> {
    if (this.#isOver || milliseconds <= 0) {
      // Everything else gets its turn.
      await new Promise((resolve) => setImmediate(resolve));
    } else {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, milliseconds);
        this.#end = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#end = undefined;
    }
    this.#isOver = false;
  }

  end(): void {
    this.#isOver = true;
    this.#end?.();
  }
}
