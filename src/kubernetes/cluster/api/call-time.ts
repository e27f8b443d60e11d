/** How long a call may take: until its time is over, or one of those who wait for it gives up. */
import { setMaxListeners } from 'node:events';
import { errorText } from '../../../base/errors.ts';

export class CallTime {
  readonly #controller = new AbortController();
  readonly #signals: readonly AbortSignal[];
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #end: number;
  /** Why it is over; `undefined` = it is not. */
  over: string | undefined;

  /** `milliseconds`: `undefined` = no limit. */
  constructor(milliseconds: number | undefined, signals: readonly (AbortSignal | undefined)[]) {
    this.#end = milliseconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + milliseconds;
    this.#signals = signals.filter((signal) => signal !== undefined);
    if (milliseconds !== undefined) {
      this.#timer = setTimeout(() => this.#abort(`no answer within ${milliseconds / 1000} s`), milliseconds);
    }
    for (const signal of this.#signals) {
      if (signal.aborted) {
        this.#abort(errorText(signal.reason));
      }
      // One signal may serve many calls; Node would warn of a leak at more than ten listeners.
      setMaxListeners(0, signal);
      signal.addEventListener('abort', this.#heard, { once: true });
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  throwIfOver(): void {
    this.signal.throwIfAborted();
  }

  /** What the work resolves to, unless the time is over before; the work goes on. */
  async within<Result>(work: Result | Promise<Result>): Promise<Result> {
    this.throwIfOver();
    return new Promise<Result>((resolve, reject) => {
      this.signal.addEventListener('abort', () => reject(this.signal.reason), { once: true });
      Promise.resolve(work).then(resolve, reject);
    });
  }

  /** Resolves to false, at once, if that would take longer than there is time; rejects if it is over meanwhile. */
  async pause(milliseconds: number): Promise<boolean> {
    if (performance.now() + milliseconds >= this.#end) {
      return false;
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, milliseconds);
      function done() {
        clearTimeout(timer);
        resolve();
      }
      this.signal.addEventListener('abort', done, { once: true });
    });
    this.throwIfOver();
    return true;
  }

  /** Frees timer and listeners; with a reason it also ends what still runs. */
  end(reason?: string): void {
    clearTimeout(this.#timer);
    for (const signal of this.#signals) {
      signal.removeEventListener('abort', this.#heard);
    }
    if (reason !== undefined) {
      this.#controller.abort(new Error(reason));
    }
  }

  readonly #heard = (event: Event): void => {
    this.#abort(errorText((event.target as AbortSignal).reason));
  };

  #abort(why: string): void {
    this.over ??= why;
    this.#controller.abort(new Error(why));
  }
}
