/** Finds workers that do not run: stopped, or held for so long that their own watchdog should have ended them. */

/** How often the primary looks, in milliseconds. */
const LOOK_MS = 500;
/** What is held is ended by its own watchdog, which names the filter. It gets so much longer, in milliseconds. */
const SLACK_MS = 3000;
/** A worker that starts loads code, and may be slow on a busy machine, in milliseconds. */
const START_MS = 60_000;

export interface Beating {
  readonly beats: number;
  readonly isReady: boolean;
}

interface Seen {
  beats: number;
  without: number;
}

/**
 * Looks are counted, not time: where the whole machine stood still, workers had no turn either. `seconds`: how long a worker may be held,
 * 0 = for ever.
 */
export class Heartbeats<Worker extends Beating> {
  readonly #workers: () => Iterable<Worker>;
  readonly #silent: (worker: Worker, milliseconds: number) => void;
  readonly #seen = new WeakMap<Worker, Seen>();
  readonly #seconds: number;
  readonly #timer: NodeJS.Timeout;

  constructor(
    seconds: number,
    workers: () => Iterable<Worker>,
    silent: (worker: Worker, milliseconds: number) => void,
  ) {
    this.#workers = workers;
    this.#silent = silent;
    this.#seconds = seconds;
    this.#timer = setInterval(() => this.look(), LOOK_MS);
  }

  /** For tests; the timer does it. */
  look(): void {
    for (const worker of this.#workers()) {
      const seen = this.#seen.get(worker) ?? { beats: -1, without: 0 };
      seen.without = seen.beats === worker.beats ? seen.without + 1 : 0;
      seen.beats = worker.beats;
      this.#seen.set(worker, seen);
      const limit = this.#limit(worker);
      if (seen.without * LOOK_MS >= limit) {
        seen.without = 0;
        this.#silent(worker, limit);
      }
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #limit({ isReady }: Beating): number {
    const held = this.#seconds === 0 ? Number.POSITIVE_INFINITY : this.#seconds * 1000 + SLACK_MS;
    return isReady ? held : Math.max(held, START_MS);
  }
}
