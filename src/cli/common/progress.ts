/** A progress line on a terminal. Writes nothing if standard error is a file or a pipe. */

import { setImmediate as otherTurn } from 'node:timers/promises';

const EVERY_MS = 200;
/** Work that takes less time needs no line. */
const QUIET_MS = 400;
const BAR = 24;
const WIDEST = 100;
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export class Progress {
  readonly #terminal: Terminal | undefined;
  readonly #what: string;
  readonly #started = performance.now();
  #looked = this.#started + QUIET_MS - EVERY_MS;
  #isShown = false;

  /** The value of `done` at the end; `undefined` = unknown (yet). */
  total: number | undefined;

  /** `what`: the items, such as `leases`. */
  constructor(what: string, total?: number, terminal: Terminal = process.stderr) {
    this.#terminal = terminal.isTTY === true && process.env.TERM !== 'dumb' ? terminal : undefined;
    this.#what = what;
    this.total = total;
  }

  /**
   * May be called for each item; it writes five times a second. Await the promise if the work does not yield
   * otherwise: it lets the process handle Ctrl-C. `items`: if `done` counts something else, such as bytes.
   */
  show(done: number, items = done): Promise<void> | undefined {
    const now = performance.now();
    if (this.#terminal === undefined || now - this.#looked < EVERY_MS) {
      return undefined;
    }
    this.#looked = now;
    const rate = Math.round(items / ((now - this.#started) / 1000));
    const counts = `${items.toLocaleString('en')} ${this.#what}, ${rate.toLocaleString('en')}/s`;
    const columns = Math.min(this.#terminal.columns || WIDEST, WIDEST) - 1;
    if (!this.#isShown) {
      this.#isShown = true;
      for (const signal of SIGNALS) {
        process.prependListener(signal, this.#interrupted);
      }
    }
    const share = this.#share(done);
    const whole = `${share}${counts}`;
    const shown = share === '' || whole.length + BAR + 3 > columns ? whole : `${this.#bar(done)} ${whole}`;
    this.#terminal.write(`\r\x1b[K${shown.slice(0, Math.max(columns, 0))}`);
    return otherTurn();
  }

  /** Removes the line. Must be called before other output. */
  end(): void {
    for (const signal of SIGNALS) {
      process.off(signal, this.#interrupted);
    }
    if (this.#isShown) {
      this.#isShown = false;
      this.#terminal?.write('\r\x1b[K');
    }
  }

  /** Ends the process as the signal would have, unless the signal has another listener. */
  readonly #interrupted = (signal: NodeJS.Signals): void => {
    this.end();
    if (process.listenerCount(signal) === 0) {
      process.kill(process.pid, signal);
    }
  };

  #share(done: number): string {
    const part = this.#part(done);
    return part === undefined ? '' : `${String(Math.floor(part * 100)).padStart(3)} %  `;
  }

  #bar(done: number): string {
    const full = Math.floor((this.#part(done) ?? 0) * BAR);
    return `[${'#'.repeat(full)}${' '.repeat(BAR - full)}]`;
  }

  /** From 0 to 1; `undefined` = unknown. */
  #part(done: number): number | undefined {
    return this.total === undefined || this.total === 0 ? undefined : Math.min(done / this.total, 1);
  }
}
