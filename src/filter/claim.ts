/** Claims: what a lease takes from limits that leases share. */
import type { Instant } from '../lease/dates.ts';
import type { Context, Lease, Reservation } from '../lease/lease.ts';
import type { Amount } from './amount.ts';
import type { Budget } from './budget.ts';
import type { RequestNames } from './request-names.ts';
import type { Rejection, Verdict } from './verdict.ts';

/** A lease as it would be if it were allowed. */
export interface Proposal {
  readonly context: Context;
  readonly start: Instant;
  readonly end: Instant;
  /** All reservations, including those that an update leaves out. */
  readonly reservations: readonly Reservation[];
  /**
   * Whether a reservation that is the only one of its type gets exactly the allocations that it names. `false`: it may get others,
   * because Blazar searches for hosts again.
   */
  readonly allocationsAreExact: boolean;
  /** As in the `Call`: missing unless `[keystone] resolve_names` is true, and when the ledger follows Blazar. */
  readonly names?: RequestNames | undefined;
  /**
   * The leases of the request, where the proposal is what a request asks for. Missing for a lease that exists already: one that a change
   * sets out from, or that a list of Blazar shows.
   */
  readonly request?: { readonly lease: Lease; readonly currentLease?: Lease | undefined } | undefined;
  /** Whether each reservation names its own allocations, also where several have the same type. Default: no. */
  readonly allocationsAreByReservation?: boolean;
}

/** The state of the project when the ledger asks for claims. */
export interface ProjectState {
  readonly now: Instant;
  /** Budgets of the project, and of the user in it, whenever they are valid. */
  readonly budgets: readonly Budget[];
  /** Only for a `SharedLimit` that `readsProject`. */
  readonly others?: OtherLeases | undefined;
}

/** What the other leases of the project take, as the transaction sees it that records the lease. */
export interface OtherLeases {
  /** How many are pending or active. Clusters of SkyPilot are not counted. */
  readonly count: bigint;
  /** What they take of a budget of the project. */
  readonly takenOf: (budget: Budget) => Amount;
}

/** The figures behind a refusal. */
export interface Shortage {
  /** What the lease would take. For an update: the difference, what it would take in addition to what it has. */
  readonly asked: Amount;
  /** What is available, 0 or more. */
  readonly left: Amount;
  /** What other leases have taken. */
  readonly taken: Amount;
  /** Whether the lease exists already, and would become larger. */
  readonly isUpdate: boolean;
}

/**
 * How sure the amount of a claim is before the lease exists: Blazar has not chosen its hosts yet. `at-most`: it may become less. `about`: it
 * may become more or less, since it depends on attributes that nobody knows yet.
 */
export type Precision = 'exact' | 'at-most' | 'about';

interface AnyClaim {
  /** Unique within the project. Starts with the prefix of the filter: `max_leases/project`. */
  readonly account: string;
  /** This lease may not raise the account above it. `undefined` = no limit: the claim is only counted. */
  readonly limit: Amount | undefined;
  /** For estimates. Default: exact. */
  readonly precision?: Precision;
  /** The message for the user if the limit would be exceeded. */
  refuse(shortage: Shortage): string;
}

/**
 * Counts from the moment the lease is recorded until it ends, also for a lease that starts next month. So the limit is an upper bound
 * over all pending and active leases of the account: two leases count together, even if one starts after the other has ended. A held
 * claim can express "at most ten pending or active leases". It cannot express "at most ten distinct hosts in use at once".
 */
export interface HeldClaim extends AnyClaim {
  readonly kind: 'held';
  readonly amount: Amount;
}

/** Used up over time, such as node-hours. What is unused when the lease ends is returned. */
export interface UsageClaim extends AnyClaim {
  readonly kind: 'usage';
  readonly perSecond: Amount;
  /** In seconds of the epoch. */
  readonly from: bigint;
  readonly until: bigint;
}

export type Claim = HeldClaim | UsageClaim;

/** The claims of a lease, or `reject('why')` if the request does not say enough to compute them. */
export type Claims = readonly Claim[] | Rejection;

/** A limit that leases share: the part of a `LedgerFilter` that the ledger calls. */
export interface SharedLimit {
  /** The claims of a lease, or `reject('why')` if the request does not say enough to compute them. */
  claims(proposal: Proposal, state: ProjectState): Claims;
  /** Whether it asks for the other leases of the project. Default: no, since they cost a query. */
  readonly readsProject?: boolean;
  /**
   * For requests of the past, when nobody knows what the ledger held: what the limit says whatever that was; `undefined` = it depends on it.
   * Default: it always depends.
   */
  readonly regardless?: () => Verdict | undefined;
}
