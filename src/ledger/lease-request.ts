/**
 * Turns a request into what the ledger needs: the identity of the lease, its proposal, and the filters that
 * claim something.
 */

import { InvalidRequestError } from '../base/errors.ts';
import { type Proposal, requireClaims, type SharedLimit } from '../filter/claim.ts';
import type { LeaseRequest } from '../filter/services.ts';
import { leaseEnd, leaseStart } from '../lease/dates.ts';
import {
  endInBlazar,
  keepsReservations,
  type Lease,
  type Reservation,
  reservationsAfterUpdate,
  reservationsHalfway,
} from '../lease/lease.ts';
import { shownBy } from '../lease/read-only.ts';
import { demandOf } from './accounting/demand.ts';
import { identityOf, nameOf } from './identity.ts';
import type { Claimant, LedgerRequest } from './ledger-request.ts';
import type { EndedLease } from './transactions/lease-transactions.ts';

export function claimantOf(filter: SharedLimit, name: string, audit: boolean): Claimant {
  const { readsProject } = filter;
  return {
    name,
    audit,
    readsProject,
    claims: (proposal, state) => requireClaims(filter.claims(proposal, state)),
  };
}

/**
 * `request`: parsed by the chain. `call`: its origin, if the request does not contain it. No spreads: V8
 * would create hidden classes for each request.
 */
export function ledgerRequest(
  request: LeaseRequest,
  claimants: readonly Claimant[],
  { repetition, names }: Pick<LeaseRequest, 'repetition' | 'names'> = request,
): LedgerRequest {
  const { context, adopts = false } = request;
  const lease = shownBy(request.lease);
  const owner = { context, names };
  if (request.currentLease === undefined) {
    return {
      identity: identityOf(context, [lease, lease]),
      name: nameOf([lease, lease]),
      proposal: newLease(owner, lease),
      current: undefined,
      halfway: undefined,
      isCertain: false,
      adopts,
      repetition,
      claimants,
    };
  }
  const currentLease = shownBy(request.currentLease);
  return {
    identity: identityOf(context, [currentLease, lease]),
    name: nameOf([lease, currentLease]),
    ...changedLease(owner, currentLease, lease),
    isCertain: false,
    adopts,
    repetition: undefined,
    claimants,
  };
}

type Owner = Pick<Proposal, 'context' | 'names'>;

function newLease(owner: Owner, lease: Lease): Proposal {
  const { context, names } = owner;
  const { start, end } = datesOf(lease, lease);
  const reservations = lease.reservations ?? [];
  return { context, names, start, end, reservations, allocationsAreExact: true, request: { lease } };
}

/** Blazar reports the hosts of a lease. It picks new ones only after the change was allowed. */
function changedLease(
  owner: Owner,
  currentLease: Lease,
  lease: Lease,
): Pick<LedgerRequest, 'proposal' | 'current' | 'halfway'> {
  const dates = datesOf(currentLease, lease);
  const before = { ...dates, end: endInBlazar(dates.end, currentLease) };
  const after = datesOf(lease, currentLease);
  const updated = reservationsAfterUpdate(currentLease, lease);
  const current = {
    ...owner,
    ...before,
    reservations: currentLease.reservations ?? [],
    allocationsAreExact: true,
  };
  if (keepsReservations(currentLease, lease)) {
    const request = { lease, currentLease };
    const proposal = { ...owner, ...after, reservations: updated, allocationsAreExact: true, request };
    return { proposal, current, halfway: undefined };
  }
  const halfway = reservationsHalfway(currentLease, updated);
  const unsure = { ...owner, allocationsAreExact: false };
  return {
    proposal: {
      ...unsure,
      ...after,
      reservations: withAllocationsOf(updated, halfway),
      request: { lease, currentLease },
    },
    current,
    halfway: { ...unsure, ...before, reservations: halfway },
  };
}

function withAllocationsOf(
  reservations: readonly Reservation[],
  others: readonly Reservation[],
): Reservation[] {
  return reservations.map((reservation, index) => {
    const allocations = others[index]?.allocations;
    return allocations === undefined ? reservation : { ...reservation, allocations };
  });
}

/** Takes each date from the first lease that has it. */
function datesOf(lease: Lease, other: Lease): Pick<Proposal, 'start' | 'end'> {
  const start = leaseStart(lease) ?? leaseStart(other);
  const end = leaseEnd(lease) ?? leaseEnd(other);
  if (start === undefined || end === undefined) {
    throw new InvalidRequestError('lease', 'expected a start and an end');
  }
  return { start, end };
}

/** An end may lack dates and reservations: then only the id identifies the lease. */
export function endedLease({ context, lease }: LeaseRequest): EndedLease {
  const start = leaseStart(lease);
  const end = leaseEnd(lease);
  // A request may also have null.
  const reservations = lease.reservations ?? undefined;
  const shape =
    start === undefined || end === undefined || reservations === undefined
      ? undefined
      : { start, end, demand: demandOf(reservations) };
  return { identity: identityOf(context, [lease, lease]), shape };
}
