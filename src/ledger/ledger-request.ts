/** What the ledger is asked about one lease. */

import type { Repetition } from '../filter/call.ts';
import type { Amount, Budget, Claims, ProjectState, Proposal } from '../filter/claim.ts';
import type { LeaseIdentity } from './identity.ts';

/** A lease as it is requested, and as it is. */
export interface LedgerRequest {
  readonly identity: LeaseIdentity;
  readonly name: string;
  readonly proposal: Proposal;
  /** For an update: the lease as it is. */
  readonly current: Proposal | undefined;
  /** For an update: what the lease may be if Blazar fails half way through. */
  readonly halfway: Proposal | undefined;
  /** Whether the lease is known to be as requested, because Blazar listed it. */
  readonly isCertain: boolean;
  /** What Blazar shows of the lease, from `digestOf`; `undefined` = the request is not from Blazar's list. */
  readonly shown?: string | undefined;
  /** From `demandOf`, when the reservations are unknown; `undefined` = computed from them. */
  readonly demand?: string | undefined;
  /** For a new lease with an id: whether it may have been recorded before, without the id. */
  readonly adopts: boolean;
  /** For a new lease: identifies a request that is sent again; `undefined` = it is not. */
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
