/** How a service has taken what was sent to it: failures in a row, and the pauses that it is given for them. */
import { type Pace, servicePause } from './pace.ts';

export class ServicePauses {
  readonly #pace: Pace;
  #failures = 0;
  /** Pauses in a row, and until when the current one lasts, by `performance.now()`. */
  #pauses = 0;
  #until = 0;
  /** The same, if the service has asked for it: then no answer that arrives late ends the pause. */
  #askedUntil = 0;

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /** Of the current pause, in milliseconds; 0 = there is none. */
  get left(): number {
    return Math.max(0, this.#until - performance.now());
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** It has taken nothing since it last failed. */
  get isFailing(): boolean {
    return this.#failures > 0 || this.#pauses > 0;
  }

  failed(): void {
    this.#failures += 1;
  }

  /** Returns whether it did not take messages until now. */
  served(): boolean {
    if (performance.now() < this.#askedUntil) {
      return false;
    }
    const wasPaused = this.#pauses > 0;
    this.#failures = 0;
    this.#pauses = 0;
    this.#until = 0;
    return wasPaused;
  }

  /**
   * `retryAfter`: in seconds, if the service has asked for it. Returns how many pauses there were in a row; `undefined` = there is
   * one already.
   */
  begin(retryAfter: number | undefined): number | undefined {
    if (this.left > 0 && retryAfter === undefined) {
      // Another attempt that was under way at the same time.
      return undefined;
    }
    this.#pauses += 1;
    const until = performance.now() + servicePause(this.#pauses, retryAfter, this.#pace);
    this.#until = Math.max(this.#until, until);
    if (retryAfter !== undefined) {
      this.#askedUntil = this.#until;
    }
    return this.#pauses;
  }
}
