/** A request about a lease, in the words of the ledger: which lease it is, what it is to be, and who claims something for it. */

import { InvalidRequestError } from '../errors.ts';
import type { Proposal, SharedLimit } from '../filter/claim.ts';
import type { LeaseRequest } from '../filter/services.ts';
import { reject } from '../filter/verdict.ts';
import { type Context, type Lease, leaseEnd, leaseStart, type Reservation } from '../lease/lease.ts';
import { shownBy } from '../lease/read-only.ts';
import { keepsReservations, reservationsAfterUpdate, reservationsHalfway } from '../lease/reservations.ts';
import { demandOf } from './demand.ts';
import { identityOf, nameOf } from './identity.ts';
import type { Claimant, LedgerRequest } from './prospect.ts';
import type { EndedLease } from './transactions.ts';

export function claimantOf(filter: SharedLimit, name: string, audit: boolean): Claimant {
  return { name, audit, claims: (proposal, standing) => filter.claims(proposal, standing) };
}

/** What the ledger is asked about a request whose form the chain has checked. */
export function ledgerRequest(request: LeaseRequest, claimants: readonly Claimant[]): LedgerRequest {
  const { context, repetition, adopts = false } = request;
  const lease = shownBy(request.lease);
  const currentLease = request.currentLease && shownBy(request.currentLease);
  return {
    identity: identityOf(context, [currentLease ?? lease, lease]),
    name: nameOf([lease, currentLease ?? lease]),
    ...(currentLease === undefined
      ? { proposal: newLease(context, lease), current: undefined, halfway: undefined }
      : changedLease(context, currentLease, lease)),
    isCertain: false,
    adopts: adopts && currentLease === undefined,
    repetition: currentLease === undefined ? repetition : undefined,
    claimants: movesTo(request) ? claimants.map(refusing) : claimants,
  };
}

/** Blazar lets its users write these, and would charge somebody from then on who was never asked. */
function movesTo({ context, currentLease, lease }: LeaseRequest): boolean {
  const { user_id: user = context.user_id, project_id: project = context.project_id } = lease;
  return currentLease !== undefined && (user !== context.user_id || project !== context.project_id);
}

function refusing(claimant: Claimant): Claimant {
  return { ...claimant, claims: () => reject('A lease can not be given to another user or project.') };
}

function newLease(context: Context, lease: Lease): Proposal {
  return {
    context,
    ...datesOf(lease, lease),
    reservations: lease.reservations ?? [],
    allocationsAreExact: true,
  };
}

/** Blazar says what a lease has. What it will have Blazar looks for when it has been allowed. */
function changedLease(
  context: Context,
  currentLease: Lease,
  lease: Lease,
): Pick<LedgerRequest, 'proposal' | 'current' | 'halfway'> {
  const before = datesOf(currentLease, lease);
  const after = datesOf(lease, currentLease);
  const updated = reservationsAfterUpdate(currentLease, lease);
  const current = {
    context,
    ...before,
    reservations: currentLease.reservations ?? [],
    allocationsAreExact: true,
  };
  if (keepsReservations(currentLease, lease)) {
    const proposal = { context, ...after, reservations: updated, allocationsAreExact: true };
    return { proposal, current, halfway: undefined };
  }
  const halfway = reservationsHalfway(currentLease, updated);
  const unsure = { context, allocationsAreExact: false };
  return {
    proposal: { ...unsure, ...after, reservations: withAllocationsOf(updated, halfway) },
    current,
    halfway: { ...unsure, ...before, reservations: halfway },
  };
}

/** Those that it has are kept where they can be. */
function withAllocationsOf(
  reservations: readonly Reservation[],
  others: readonly Reservation[],
): Reservation[] {
  return reservations.map((reservation, index) => {
    const allocations = others[index]?.allocations;
    return allocations === undefined ? reservation : { ...reservation, allocations };
  });
}

/** What the first of the leases does not say, the second does. */
function datesOf(lease: Lease, other: Lease): Pick<Proposal, 'start' | 'end'> {
  const [start, end] = [leaseStart, leaseEnd].map((read) => read(lease) ?? read(other));
  if (start === undefined || end === undefined) {
    throw new InvalidRequestError('lease', 'expected a start and an end');
  }
  return { start, end };
}

/** Of an end it need not be said when, nor of what: then only its id tells the lease. */
export function endedLease({ context, lease }: LeaseRequest): EndedLease {
  const [start, end] = [leaseStart(lease), leaseEnd(lease)];
  const shape =
    start === undefined || end === undefined || lease.reservations === undefined
      ? undefined
      : { start, end, demand: demandOf(lease.reservations) };
  return { identity: identityOf(context, [lease, lease]), shape };
}
