/** Logs requests refused without a decision: wrong tokens, invalid bodies. */
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

export function logRefused(logger: Logger, request: RefusedRequest): void {
  logger.warn({ ...request, reason: request.reason.slice(0, MAX_REASON) }, 'request refused');
}
