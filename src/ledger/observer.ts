/** What the ledger reports about its own work, for metrics. */

/** What a transaction was for. */
export type LedgerOperation =
  | 'check'
  | 'commit'
  | 'end'
  | 'undo'
  | 'reconcile'
  | 'budget'
  | 'outbox'
  | 'read';

/** Is called after every transaction. */
export interface LedgerObserver {
  /** `refused`: a limit was exceeded. `failed`: the ledger could not be read or written in time. */
  transacted(operation: LedgerOperation, outcome: 'done' | 'refused' | 'failed', seconds: number): void;
  /** How many refused leases may be recorded nevertheless, whenever that number changes. */
  inDoubt?(commits: number): void;
  /** By how many seconds the ledger's clock is behind the last entry of the project; 0 = it is not. After each transaction. */
  clockBehind?(seconds: number): void;
  /** An event of `[notifications]` that could not be kept for delivery. */
  noticeDropped?(event: string): void;
  /** What became of an attempt to deliver a message of the outbox; `dead` = it was the last. */
  attempted?(outcome: 'delivered' | 'failed' | 'dead'): void;
}
