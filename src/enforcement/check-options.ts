import type { Deadline } from '../base/deadline.ts';

export interface CheckOptions {
  /** Ends the wait: a filter that has not answered by then has failed. Passed to every filter. */
  readonly signal?: AbortSignal | undefined;
  /** Instead of `signal`. Cheaper: its signal is created only if something waits for it. */
  readonly deadline?: Deadline | undefined;
  /** Ask all filters, even after the first rejection. Default false. */
  readonly explain?: boolean;
  /**
   * Whether the caller can use a lease that filters have changed. If not, a change is a rejection that names the values to set.
   * Default true.
   */
  readonly acceptsChanges?: boolean;
  /** Decide, but record nothing. Default false. */
  readonly dryRun?: boolean;
  /** For the log, and the ledger. */
  readonly requestId?: string | undefined;
  /**
   * For a new lease: the same if a request is sent again, and different for every other request. The lease is then recorded once.
   * Without a key, requests that look the same are for different leases. 1 to 255 visible ASCII characters.
   */
  readonly idempotencyKey?: string | undefined;
}
