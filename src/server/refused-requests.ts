/** Log lines for requests that were not judged: a wrong token, a body that is not a request. Limited, since anybody can cause them. */
import type { Logger } from '../logger.ts';

export interface RefusedRequest {
  readonly status: number;
  readonly method: string;
  /** A path of the service, or `other`: any other text may hold a token. */
  readonly path: string;
  /** The address that the connection came from. */
  readonly address: string | undefined;
  readonly request_id?: string;
  /** Without what the client sent. */
  readonly reason: string;
}

const MAX_LINES = 30;
const WINDOW_MS = 60_000;
const MAX_REASON = 300;

/** Logs at most 30 requests in a minute, and at the end of that minute how many more there were. */
export class RefusedRequests {
  readonly #logger: Logger;
  #lines = 0;
  #suppressed = 0;
  #window: NodeJS.Timeout | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  log(request: RefusedRequest): void {
    this.#window ??= setTimeout(() => this.#endWindow(), WINDOW_MS).unref();
    if (this.#lines < MAX_LINES) {
      this.#lines += 1;
      this.#logger.warn({ ...request, reason: request.reason.slice(0, MAX_REASON) }, 'request refused');
    } else {
      this.#suppressed += 1;
    }
  }

  /** Says how many requests were not logged. */
  close(): void {
    clearTimeout(this.#window);
    this.#endWindow();
  }

  #endWindow(): void {
    if (this.#suppressed > 0) {
      this.#logger.warn({ suppressed: this.#suppressed }, 'more requests refused than are logged');
    }
    this.#window = undefined;
    this.#lines = 0;
    this.#suppressed = 0;
  }
}
