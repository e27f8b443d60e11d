/** Logs requests refused without a decision: wrong tokens, invalid bodies. Limited: clients cause them. */
import type { Logger } from '../base/logger.ts';

export interface RefusedRequest {
  readonly status: number;
  readonly method: string;
  /** A path of the service, or `other`: any other text may hold a token. */
  readonly path: string;
  readonly address: string | undefined;
  readonly request_id?: string;
  /** Without text from the client. */
  readonly reason: string;
}

const MAX_REASON = 300;

export class RefusedRequests {
  readonly #lines: LimitedLines;

  constructor(logger: Logger) {
    const more = 'more requests refused than are logged';
    this.#lines = new LimitedLines(logger, { level: 'warn', message: 'request refused', more });
  }

  log(request: RefusedRequest): void {
    this.#lines.log(() => ({ ...request, reason: request.reason.slice(0, MAX_REASON) }));
  }

  /** Logs how many lines were suppressed. */
  close(): void {
    this.#lines.close();
  }
}

interface LineLimit {
  readonly level: 'warn' | 'error';
  readonly message: string;
  /** Logged at the end of the minute, with the number of suppressed lines. */
  readonly more: string;
}

const MAX_LINES = 30;
const WINDOW_MS = 60_000;

/** Log lines that clients can cause: at most 30 per minute and kind, then the number of suppressed lines. */
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

  /** Logs how many lines were suppressed. */
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

/** A logger for what strangers can cause: its warnings are limited, each kind by itself. */
export function limitedLogger(logger: Logger): { readonly logger: Logger; readonly close: () => void } {
  const kinds = new Map<string, LimitedLines>();
  const warn = (fields: object, message: string) => {
    const known = kinds.get(message);
    const lines =
      known ?? new LimitedLines(logger, { level: 'warn', message, more: `more than are logged: ${message}` });
    kinds.set(message, lines);
    lines.log(() => fields);
  };
  return {
    logger: {
      debug: logger.debug.bind(logger),
      info: logger.info.bind(logger),
      warn: warn as Logger['warn'],
      error: logger.error.bind(logger),
    },
    close: () => {
      for (const lines of kinds.values()) {
        lines.close();
      }
    },
  };
}
