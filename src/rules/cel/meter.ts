/** What expressions may cost. */

/**
 * The steps that all rules together may take for one request. A step is the evaluation of one part of an expression, or as much work:
 * 15 to 60 nanoseconds on a machine of 2020.
 */
export const MAX_STEPS = 2_000_000;

/** The rules take more steps than a request may cost. Nothing in an expression can catch it. */
export class TooManyStepsError extends Error {
  override readonly name = 'TooManyStepsError';

  constructor() {
    super(`the rules take more than ${MAX_STEPS} steps for this request`);
  }
}

/** Counts the steps of one request. */
export class Meter {
  readonly #limit: number;
  #left: number;

  constructor(limit = MAX_STEPS) {
    this.#limit = limit;
    this.#left = limit;
  }

  get spent(): number {
    return this.#limit - this.#left;
  }

  /** @throws TooManyStepsError if the request has no such steps left */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) {
      throw new TooManyStepsError();
    }
  }
}
