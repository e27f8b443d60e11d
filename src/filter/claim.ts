/** What a lease takes from limits that leases share. */
import type { Instant } from '../lease/dates.ts';
import type { Context, Reservation } from '../lease/lease.ts';
import type { Amount } from './amount.ts';
import type { Budget } from './budget.ts';
import type { Rejection } from './verdict.ts';

/** A lease as it would be. */
export interface Proposal {
  readonly context: Context;
  readonly start: Instant;
  readonly end: Instant;
  /** All of them, also those that an update leaves out. */
  readonly reservations: readonly Reservation[];
  /**
   * Whether a reservation that is the only one of its type has, or gets, exactly the allocations that it names. Where not, they are
   * some that it may have among others, since Blazar looks for hosts once more.
   */
  readonly allocationsAreExact: boolean;
}

/** What the ledger knows of the project when it asks for claims. */
export interface Standing {
  readonly now: Instant;
  /** Those of the project, and within it of the user, whenever they are valid. */
  readonly budgets: readonly Budget[];
}

/** The figures behind a refusal. */
export interface Shortage {
  /** What the lease would take; of an update, what it would take more. */
  readonly asked: Amount;
  /** What is there to take, 0 or more. */
  readonly left: Amount;
  /** What other leases have taken. */
  readonly taken: Amount;
  /** Whether the lease is there already, and is to become larger. */
  readonly isUpdate: boolean;
}

interface AnyClaim {
  /** Unique within the project. Starts with the prefix of the filter: `max_leases/project`. */
  readonly account: string;
  /** The account may not rise above it by this lease; `undefined` = there is no limit. */
  readonly limit: Amount | undefined;
  /** Why not, for the user. */
  refuse(shortage: Shortage): string;
}

/** Is taken as long as the lease is there, such as one of so many leases. */
export interface HeldClaim extends AnyClaim {
  readonly kind: 'held';
  readonly amount: Amount;
}

/** Is used up by time, such as node-hours. What is not used when the lease ends is given back. */
export interface UsageClaim extends AnyClaim {
  readonly kind: 'usage';
  readonly perSecond: Amount;
  /** In seconds of the epoch. */
  readonly from: bigint;
  readonly until: bigint;
}

export type Claim = HeldClaim | UsageClaim;

/** What a filter answers: what the lease would take, or `reject('why')` where that can't be told. */
export type Claims = readonly Claim[] | Rejection;

/** A limit that leases share: what `LedgerFilter` is to the ledger. */
export interface SharedLimit {
  /** What the lease would take, or `reject('why')` where the request does not say enough to tell. */
  claims(proposal: Proposal, standing: Standing): Claims;
}
