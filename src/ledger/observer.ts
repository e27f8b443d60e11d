/** Reports of the ledger about its own work, for metrics. */

/** The purpose of a transaction. */
export type LedgerOperation =
  | 'check'
  | 'commit'
  | 'end'
  | 'undo'
  | 'reconcile'
  | 'budget'
  | 'outbox'
  | 'read';

/** Called after every transaction. */
export interface LedgerObserver {
  /** `refused`: a limit was exceeded. `failed`: the ledger could not be read or written in time. */
  transacted(operation: LedgerOperation, outcome: 'done' | 'refused' | 'failed', seconds: number): void;
  /** Number of refused leases that may be recorded nevertheless; called on each change. */
  inDoubt?(commits: number): void;
  /**
   * Seconds that the ledger's clock is behind the last entry of the project; 0 = not behind. Called after
   * each transaction.
   */
  clockBehind?(seconds: number): void;
  /** An event of `[notifications]` that could not be stored for delivery. */
  noticeDropped?(event: string): void;
  /** Outcome of an attempt to deliver a message of the outbox; `dead` = there will be no further attempt. */
  attempted?(outcome: 'delivered' | 'failed' | 'dead'): void;
}
