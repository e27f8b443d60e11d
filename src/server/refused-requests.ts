/** Log lines for requests that were not judged: a wrong token, a body that is not a request. Limited, since anybody can cause them. */
import type { Logger } from '../base/logger.ts';
import { LimitedLines } from './limited-lines.ts';

export interface RefusedRequest {
  readonly status: number;
  readonly method: string;
  /** A path of the service, or `other`: any other text may hold a token. */
  readonly path: string;
  /** The address of the client. */
  readonly address: string | undefined;
  readonly request_id?: string;
  /** Without what the client sent. */
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

  /** Says how many requests were not logged. */
  close(): void {
    this.#lines.close();
  }
}
