import type { Context, Lease } from '../lease/lease.ts';
import { BaseFilter } from './base-filter.ts';
import type { Call } from './call.ts';
import type { Claims, ProjectState, Proposal } from './claim.ts';
import type { Verdict } from './verdict.ts';

/**
 * A limit that leases share, such as a budget. A subclass returns the claims of a lease. The ledger compares them with the limits,
 * records them when every filter has allowed the lease, and returns them when the lease ends.
 *
 * There are two kinds of claims:
 * - `held`: an amount that is taken from the moment the lease is recorded until it ends, whatever its dates: a pending lease counts
 *   like an active one. For "at most ten leases".
 * - `usage`: an amount for each second of the lease. For budgets of node-hours.
 *
 * Neither counts what is in use at the same time ("at most ten hosts at once"): claims have no schedule.
 *
 * `claims` must depend only on its arguments and the options: it is called by checks, and in the transaction that records the
 * lease. A check that records the lease at once leaves this to the transaction where no other filter comes after.
 */
export abstract class LedgerFilter<Options = unknown> extends BaseFilter<Options> {
  /** The claims of a lease, or `reject('why')` if the request does not say enough to compute them. */
  abstract claims(proposal: Proposal, state: ProjectState): Claims;

  override open(): void | Promise<void> {
    return this.services.ledger.open();
  }

  checkCreate(context: Context, lease: Lease, call: Call): Promise<Verdict> {
    return this.services.ledger.check(this, { context, lease }, call);
  }

  checkUpdate(context: Context, currentLease: Lease, newLease: Lease, call: Call): Promise<Verdict> {
    return this.services.ledger.check(this, { context, currentLease, lease: newLease }, call);
  }

  onEnd(context: Context, lease: Lease, call: Call): Promise<void> {
    return this.services.ledger.end({ context, lease }, call);
  }
}

/** Whether a filter is a `LedgerFilter`, of this copy of the package or of another. */
export function isLedgerFilter(filter: BaseFilter): filter is LedgerFilter {
  return 'claims' in filter && typeof filter.claims === 'function';
}

/** Whether the checks of a filter are those of `LedgerFilter`, which ask nobody but the ledger. */
export function isOnlyOfTheLedger(filter: BaseFilter): boolean {
  const { checkCreate, checkUpdate } = LedgerFilter.prototype;
  return isLedgerFilter(filter) && filter.checkCreate === checkCreate && filter.checkUpdate === checkUpdate;
}
