import type { Deadline } from '../base/deadline.ts';

export interface CheckOptions {
  /** Ends the wait: filters that have not answered by then have failed. Passed to every filter. */
  readonly signal?: AbortSignal | undefined;
  /** Cheaper alternative to `signal`: its signal is created only if something waits for it. */
  readonly deadline?: Deadline | undefined;
  /** Call all filters, even after the first rejection. Default false. */
  readonly explain?: boolean;
  /**
   * Whether the caller can use a lease that filters changed. If not, a change is a rejection that names the
   * values to set. Default true.
   */
  readonly acceptsChanges?: boolean;
  /** Decide, but record nothing. Default false. */
  readonly dryRun?: boolean;
  /** For the log, and the ledger. */
  readonly requestId?: string | undefined;
  /**
   * For a new lease: the same if a request is repeated, different for every other request. The lease is then
   * recorded once. Without a key, requests that look the same are for different leases. 1 to 255 visible
   * ASCII characters.
   */
  readonly idempotencyKey?: string | undefined;
}
