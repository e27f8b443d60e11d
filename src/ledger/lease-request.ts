/** Turns a request about a lease into what the ledger needs: which lease it is, what it becomes, and which filters claim something. */

import { InvalidRequestError } from '../base/errors.ts';
import type { Proposal, SharedLimit } from '../filter/claim.ts';
import type { LeaseRequest } from '../filter/services.ts';
import { reject } from '../filter/verdict.ts';
import {
  keepsReservations,
  type Lease,
  leaseEnd,
  leaseStart,
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
  return { name, audit, readsProject, claims: (proposal, state) => filter.claims(proposal, state) };
}

/** `request`: one that the chain has parsed. */
export function ledgerRequest(request: LeaseRequest, claimants: readonly Claimant[]): LedgerRequest {
  const { context, repetition, adopts = false, names } = request;
  const lease = shownBy(request.lease);
  const currentLease = request.currentLease && shownBy(request.currentLease);
  const mistake = mistakeOf(request);
  return {
    identity: identityOf(context, [currentLease ?? lease, lease]),
    name: nameOf([lease, currentLease ?? lease]),
    ...(currentLease === undefined
      ? { proposal: newLease({ context, names }, lease), current: undefined, halfway: undefined }
      : changedLease({ context, names }, currentLease, lease)),
    isCertain: false,
    adopts: adopts && currentLease === undefined,
    repetition: currentLease === undefined ? repetition : undefined,
    claimants: mistake === undefined ? claimants : claimants.map((one) => refusing(one, mistake)),
  };
}

/** Why an update is refused in any case. Blazar lets users do such things, and an owner who never agreed would be charged. */
function mistakeOf({ context, currentLease, lease }: LeaseRequest): string | undefined {
  if (currentLease === undefined) {
    return undefined;
  }
  const { user_id: user = context.user_id, project_id: project = context.project_id } = lease;
  if (user !== context.user_id || project !== context.project_id) {
    return 'A lease cannot be given to another user or project.';
  }
  const { id = currentLease.id } = lease;
  return currentLease.id !== undefined && id !== currentLease.id
    ? 'The id of a lease cannot be changed.'
    : undefined;
}

function refusing(claimant: Claimant, why: string): Claimant {
  return { ...claimant, claims: () => reject(why) };
}

type Owner = Pick<Proposal, 'context' | 'names'>;

function newLease(owner: Owner, lease: Lease): Proposal {
  return {
    ...owner,
    ...datesOf(lease, lease),
    reservations: lease.reservations ?? [],
    allocationsAreExact: true,
    request: { lease },
  };
}

/** Blazar reports the hosts that a lease has. It picks new ones only after the change was allowed. */
function changedLease(
  owner: Owner,
  currentLease: Lease,
  lease: Lease,
): Pick<LedgerRequest, 'proposal' | 'current' | 'halfway'> {
  const before = datesOf(currentLease, lease);
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

/** Keeps the hosts that a reservation has, where it may. */
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
  const [start, end] = [leaseStart, leaseEnd].map((read) => read(lease) ?? read(other));
  if (start === undefined || end === undefined) {
    throw new InvalidRequestError('lease', 'expected a start and an end');
  }
  return { start, end };
}

/** An end may lack dates and reservations: then only the id identifies the lease. */
export function endedLease({ context, lease }: LeaseRequest): EndedLease {
  const [start, end] = [leaseStart(lease), leaseEnd(lease)];
  const shape =
    start === undefined || end === undefined || lease.reservations === undefined
      ? undefined
      : { start, end, demand: demandOf(lease.reservations) };
  return { identity: identityOf(context, [lease, lease]), shape };
}
