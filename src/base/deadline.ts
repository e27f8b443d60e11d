/** The deadline has passed. */
export class NoAnswerError extends Error {}

/** How long to wait for an answer. */
export interface Wait {
  /** Fires when the wait is over; `undefined` = it never ends. */
  readonly signal: AbortSignal | undefined;
  /** Throws the reason if the wait has ended. */
  throwIfOver(): void;
}

/**
 * A time by which an answer must arrive. Signal and timer are created when `signal` is first read: most
 * filters answer at once, and the two would cost more than the answer.
 *
 * Unlike with `AbortSignal.timeout`, the timer keeps the process alive: a missing answer must end in a
 * refusal, not in a process that exits silently.
 */
export class Deadline implements Wait {
  readonly #seconds: number;
  readonly #at: number;
  #controller: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(seconds: number) {
    this.#seconds = seconds;
    this.#at = performance.now() + seconds * 1000;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.#timer = setTimeout(() => this.#expire(), this.milliseconds);
    }
    return this.#controller.signal;
  }

  /** The time left; 0 when the deadline has passed. */
  get milliseconds(): number {
    return Math.max(0, this.#at - performance.now());
  }

  throwIfOver(): void {
    if (performance.now() >= this.#at) {
      // Fires the signal now, not when the event loop runs the timer.
      this.#expire();
      throw this.#reason();
    }
  }

  /** Stops the timer: the signal will not fire. */
  end(): void {
    clearTimeout(this.#timer);
  }

  #expire(): void {
    this.#controller?.abort(this.#reason());
  }

  #reason(): Error {
    return new NoAnswerError(`no answer within ${this.#seconds} s`);
  }
}

/** Runs some work with a deadline, which the work itself must respect. */
export async function withinDeadline<Result>(
  seconds: number,
  work: (deadline: Deadline) => Promise<Result>,
): Promise<Result> {
  const deadline = new Deadline(seconds);
  try {
    return await work(deadline);
  } finally {
    deadline.end();
  }
}

const FOREVER: Wait = { signal: undefined, throwIfOver() {} };

/** A wait that ends when the caller's signal fires. */
export function waitFor(signal: AbortSignal | undefined): Wait {
  return signal === undefined ? FOREVER : { signal, throwIfOver: () => signal.throwIfAborted() };
}

/** Waits for a promise until the wait is over. An answer that comes later is ignored. */
export async function inTime<Answer>(answer: PromiseLike<Answer>, wait: Wait): Promise<Answer> {
  const { signal } = wait;
  if (signal === undefined) {
    return answer;
  }
  let stopWaiting: (() => void) | undefined;
  const aborted = new Promise<never>((_, fail) => {
    stopWaiting = () => fail(signal.reason);
    signal.addEventListener('abort', stopWaiting, { once: true });
  });
  if (signal.aborted) {
    stopWaiting?.();
  }
  try {
    const answered = await Promise.race([answer, aborted]);
    wait.throwIfOver();
    return answered;
  } finally {
    if (stopWaiting !== undefined) {
      signal.removeEventListener('abort', stopWaiting);
    }
  }
}

/** As `inTime`, and at most half of the time until a deadline: the other half is left for what comes after. */
export function inHalfTheTime<Answer>(answer: PromiseLike<Answer>, wait: Wait): Promise<Answer> {
  return wait instanceof Deadline
    ? withinDeadline(Math.round(wait.milliseconds / 2) / 1000, (half) => inTime(answer, half))
    : inTime(answer, wait);
}

/** Runs what belongs to a plug-in while it is loaded or closed: if it never ended, no reload would end any more. */
export function withinAMinute<Result>(work: () => Result | PromiseLike<Result>): Promise<Result> {
  return withinDeadline(60, async (deadline) => inTime(Promise.resolve(work()), deadline));
}
