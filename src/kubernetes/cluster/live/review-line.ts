/** Bounds how many reviews run at once. */

/** One set of reviews: those that are still to start, and how many run. */
interface ReviewSet {
  startNext(): Promise<void>;
  running: number;
}

export interface ReviewLineOptions {
  /** How many reviews run at once. Default: 64. */
  readonly total?: number;
  /** How many of one set. Default: 16. */
  readonly each?: number;
}

/**
 * Sets are served in the order in which they came, so that the first ones are done in time even if there are too many.
 */
export class ReviewLine {
  readonly #each: number;
  readonly #sets = new Set<ReviewSet>();
  #free: number;

  constructor({ total = 64, each = 16 }: ReviewLineOptions = {}) {
    this.#free = total;
    this.#each = each;
  }

  /**
   * Calls `ask` for every name, and resolves to the answers. Rejects at the first that fails, and when the signal fires; nothing more is
   * started then. What runs already keeps its place until it ends: `ask` must respect the signal too.
   */
  all<Answer>(
    names: readonly string[],
    ask: (name: string) => Promise<Answer>,
    signal: AbortSignal,
  ): Promise<Answer[]> {
    if (names.length === 0) {
      return Promise.resolve([]);
    }
    return new Promise((resolve, reject) => {
      const answers: Answer[] = [];
      const left = [...names.entries()].reverse();
      let answered = 0;
      const leave = () => {
        signal.removeEventListener('abort', giveUp);
        this.#sets.delete(set);
      };
      const giveUp = () => {
        leave();
        reject(signal.reason);
      };
      const startNext = async () => {
        const next = left.pop();
        if (left.length === 0) {
          this.#sets.delete(set);
        }
        if (next === undefined) {
          return;
        }
        try {
          answers[next[0]] = await ask(next[1]);
          answered += 1;
        } catch (error) {
          leave();
          reject(error);
        }
        if (answered === names.length) {
          leave();
          resolve(answers);
        }
      };
      const set: ReviewSet = { startNext, running: 0 };
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      signal.addEventListener('abort', giveUp, { once: true });
      this.#sets.add(set);
      this.#fill();
    });
  }

  #fill(): void {
    for (const set of this.#sets) {
      while (this.#free > 0 && set.running < this.#each && this.#sets.has(set)) {
        this.#free -= 1;
        set.running += 1;
        void set.startNext().finally(() => {
          this.#free += 1;
          set.running -= 1;
          this.#fill();
        });
      }
      if (this.#free === 0) {
        return;
      }
    }
  }
}
