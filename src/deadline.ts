/** How long it is waited for an answer. */
export interface Wait {
  /** Fires when the wait is over; `undefined` = it never is. */
  readonly signal: AbortSignal | undefined;
  /** Throws why the wait is over, if it is. */
  throwIfOver(): void;
}

/**
 * A time by which an answer must be there. Signal and timer are made when somebody asks for the signal, as everyone does
 * who waits: most filters answer at once, and the two would cost more than their answer.
 *
 * Unlike `AbortSignal.timeout` the timer keeps the process alive until then: what never answers must end in a refusal, not
 * in a program that ends without a word.
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

  /** How long it is until then; 0 when it is over. */
  get milliseconds(): number {
    return Math.max(0, this.#at - performance.now());
  }

  throwIfOver(): void {
    if (performance.now() >= this.#at) {
      // Whoever waits finds out now, and not when the timer gets its turn.
      this.#expire();
      throw this.#reason();
    }
  }

  /** Nobody waits any longer; the signal will not fire. */
  end(): void {
    clearTimeout(this.#timer);
  }

  #expire(): void {
    this.#controller?.abort(this.#reason());
  }

  #reason(): Error {
    return new Error(`no answer within ${this.#seconds} s`);
  }
}

/** Does some work that must be done in time, in seconds. The work itself looks at the deadline. */
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

/** The wait that a caller's own signal ends. */
export function waitFor(signal: AbortSignal | undefined): Wait {
  return signal === undefined ? FOREVER : { signal, throwIfOver: () => signal.throwIfAborted() };
}

/** Waits for a promise, but not for too long. What is answered because the time is over is no answer. */
export async function inTime(answer: PromiseLike<unknown>, wait: Wait): Promise<unknown> {
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
