/** A request about a lease, in the words of the ledger: which lease it is, what it is to be, and who claims something for it. */
import { InvalidRequestError } from '../errors.ts';
import { type Context, type Lease, leaseEnd, leaseStart, type Reservation } from '../lease.ts';
import { reservationsAfterUpdate } from '../reservations.ts';
import type { Proposal } from './claim.ts';
import { demandOf, identityOf, nameOf } from './identity.ts';
import type { LedgerFilter } from './ledger-filter.ts';
import type { Claimant, LedgerRequest } from './prospect.ts';
import type { EndedLease } from './transactions.ts';

/** A lease that somebody wants, or a change of one. */
export interface LeaseRequest {
  readonly context: Context;
  /** Of an update. */
  readonly currentLease?: Lease;
  readonly lease: Lease;
}

export function claimantOf(filter: LedgerFilter, name: string, audit: boolean): Claimant {
  return { name, audit, claims: (proposal, standing) => filter.claims(proposal, standing) };
}

/** What the ledger is asked about a request whose form the chain has checked. */
export function ledgerRequest(
  { context, currentLease, lease }: LeaseRequest,
  claimants: readonly Claimant[],
): LedgerRequest {
  const reservations =
    currentLease === undefined ? (lease.reservations ?? []) : reservationsAfterUpdate(currentLease, lease);
  const current =
    currentLease === undefined
      ? undefined
      : proposalOf(context, [currentLease, lease], currentLease.reservations ?? []);
  const proposal = proposalOf(context, [lease, currentLease ?? lease], reservations);
  return {
    // A lease is found by what it was before.
    identity: identityOf(context, [currentLease ?? lease, lease], (current ?? proposal).start),
    name: nameOf([lease, currentLease ?? lease]),
    demand: () => demandOf(reservations),
    proposal,
    current,
    claimants,
  };
}

/** What the first of the leases does not say, the second does. */
function proposalOf(
  context: Context,
  leases: [Lease, Lease],
  reservations: readonly Reservation[],
): Proposal {
  const [start, end] = [leaseStart, leaseEnd].map((read) => read(leases[0]) ?? read(leases[1]));
  if (start === undefined || end === undefined) {
    throw new InvalidRequestError('lease', 'expected a start and an end');
  }
  return { context, start, end, reservations };
}

/** Of an end it need not be said when. */
export function endedLease({ context, lease }: LeaseRequest): EndedLease {
  const start = leaseStart(lease) ?? 0n;
  return { identity: identityOf(context, [lease, lease], start), end: leaseEnd(lease) };
}
