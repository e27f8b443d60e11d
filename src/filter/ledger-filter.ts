import type { Context, Lease } from '../lease/lease.ts';
import { BaseFilter } from './base-filter.ts';
import type { Claims, Proposal, Standing } from './claim.ts';
import type { Call } from './services.ts';
import type { Verdict } from './verdict.ts';

/**
 * A limit that leases share, such as a budget. A subclass says what a lease claims; the ledger says whether there is as much,
 * records it when every filter has allowed the lease, and gives it back when the lease ends.
 *
 * `claims` must depend on nothing but its arguments and the options: it is asked by a check, and once more in the
 * transaction that records the lease.
 */
export abstract class LedgerFilter<Options = unknown> extends BaseFilter<Options> {
  /** What the lease would take, or `reject('why')` where the request does not say enough to tell. */
  abstract claims(proposal: Proposal, standing: Standing): Claims;

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

/** Whether a filter claims something, of this copy of the package or of another. */
export function isLedgerFilter(filter: BaseFilter): filter is LedgerFilter {
  return 'claims' in filter && typeof filter.claims === 'function';
}
