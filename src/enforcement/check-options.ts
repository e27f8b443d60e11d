import type { Deadline } from '../deadline.ts';

/** How a request is to be judged. */
export interface CheckOptions {
  /** Ends the wait: what has not answered by then has failed. Handed to every filter. */
  readonly signal?: AbortSignal | undefined;
  /** In place of a signal: one that is made only if something waits for it. */
  readonly deadline?: Deadline | undefined;
  /** Ask all filters, also behind the first rejection. Default false. */
  readonly explain?: boolean;
  /**
   * Whether the caller can go on with another lease than it sent. Where it can't, a change is a rejection that names
   * the values to set. Default true.
   */
  readonly acceptsChanges?: boolean;
  /** Decide, and record nothing: for trying. Default false. */
  readonly dryRun?: boolean;
  /** Stands in the log of what fails, and in the ledger. */
  readonly requestId?: string | undefined;
  /**
   * Of a new lease: the same when a request is sent again, and never of another one. What was recorded for it is then not recorded
   * once more. Without it, requests that look alike are for different leases. 1 to 255 visible characters of ASCII.
   */
  readonly idempotencyKey?: string | undefined;
}
