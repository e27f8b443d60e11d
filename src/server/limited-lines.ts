import type { Logger } from '../base/logger.ts';

export interface LineLimit {
  readonly level: 'warn' | 'error';
  readonly message: string;
  /** At the end of the minute, with how many there were. */
  readonly more: string;
}

const MAX_LINES = 30;
const WINDOW_MS = 60_000;

/** Lines of one kind that anybody can cause: at most 30 in a minute, and at its end how many more there were. */
export class LimitedLines {
  readonly #logger: Logger;
  readonly #limit: LineLimit;
  #lines = 0;
  #suppressed = 0;
  #window: NodeJS.Timeout | undefined;

  constructor(logger: Logger, limit: LineLimit) {
    this.#logger = logger;
    this.#limit = limit;
  }

  log(fields: () => object): void {
    this.#window ??= setTimeout(() => this.close(), WINDOW_MS).unref();
    if (this.#lines < MAX_LINES) {
      this.#lines += 1;
      this.#logger[this.#limit.level](fields(), this.#limit.message);
    } else {
      this.#suppressed += 1;
    }
  }

  /** Says how many lines were not logged. */
  close(): void {
    clearTimeout(this.#window);
    if (this.#suppressed > 0) {
      this.#logger[this.#limit.level]({ suppressed: this.#suppressed }, this.#limit.more);
    }
    this.#window = undefined;
    this.#lines = 0;
    this.#suppressed = 0;
  }
}
