/** What one entry of the journal has in common with the others of its transaction: who changed balances, why, and what is known about them. */
import type { Amount } from '../../filter/amount.ts';
import type { Budget } from '../../filter/budget.ts';

/** Who made an entry, and why. */
export interface Author {
  readonly operation: 'create' | 'update' | 'end' | 'undo' | 'reconcile';
  readonly who: string;
  readonly requestId: string | null;
  readonly reason: string | null;
}

/** One recording of a lease. */
export interface RecordingId {
  readonly lease: bigint;
  readonly revision: bigint;
}

/** What the changes of one transaction have in common. */
export interface JournalEntry {
  readonly project_id: string;
  readonly at: bigint;
  /** Before. */
  readonly balances: ReadonlyMap<string, Amount>;
  readonly author: Author;
  /** Budgets that were read already. */
  readonly budgets?: readonly Budget[];
  /** What can be taken back. */
  readonly recording?: RecordingId;
}
