/** The requests of the ledger about one lease. */

import type { Amount, Budget, Claims, ProjectState, Proposal } from '../filter/claim.ts';
import type { Repetition } from '../filter/verdict.ts';
import type { LeaseIdentity } from './identity.ts';

/** A lease as requested, and as it is. */
export interface LedgerRequest {
  readonly identity: LeaseIdentity;
  readonly name: string;
  readonly proposal: Proposal;
  /** For an update: the current lease. */
  readonly current: Proposal | undefined;
  /** For an update: the possible state of the lease if Blazar fails halfway. */
  readonly halfway: Proposal | undefined;
  /** Whether the lease is certainly as requested, because Blazar listed it. */
  readonly isCertain: boolean;
  /** Digest of the lease in Blazar's list, from `digestOf`; `undefined` = the request is not from a list. */
  readonly shown?: string | undefined;
  /** From `demandOf`, when the reservations are unknown; `undefined` = computed from them. */
  readonly demand?: string | undefined;
  /** A check may have recorded the same before, a new lease without its id. */
  readonly adopts: boolean;
  /** For a new lease: the idempotency key of a request that may be repeated; `undefined` = none. */
  readonly repetition: Repetition | undefined;
  readonly claimants: readonly Claimant[];
}

export interface Claimant {
  readonly name: string;
  readonly audit: boolean;
  /** As in `SharedLimit`. */
  readonly readsProject?: boolean | undefined;
  claims(proposal: Proposal, state: ProjectState): Claims;
}

export interface Author {
  readonly operation: 'create' | 'update' | 'end' | 'undo' | 'reconcile';
  readonly who: string;
  readonly requestId: string | null;
  readonly reason: string | null;
}

export interface RecordingId {
  readonly lease: bigint;
  readonly revision: bigint;
}

/** The common values of the changes in one transaction. */
export interface JournalEntry {
  readonly project_id: string;
  readonly at: bigint;
  /** The balances before the changes. */
  readonly balances: ReadonlyMap<string, Amount>;
  readonly author: Author;
  /** Budgets that were already read. */
  readonly budgets?: readonly Budget[];
  /** The recording that can be taken back. */
  readonly recording?: RecordingId;
}
