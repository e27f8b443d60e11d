/** A lease as Blazar has it: from a list in a file, or from an observation by the service. */
import { hash } from 'node:crypto';
import { smaller } from '../../filter/claim.ts';
import type { Instant } from '../../lease/dates.ts';
import type { Reservation } from '../../lease/lease.ts';

/** A listed lease. `openstack reservation lease list` prints neither its owner nor its reservations. */
export interface ListedLease {
  readonly id: string;
  readonly name: string;
  readonly start: Instant;
  readonly end: Instant;
  readonly projectId: string | undefined;
  readonly userId: string | undefined;
  /** As Blazar lists them. */
  readonly reservations: readonly Reservation[] | undefined;
}

/** A listed lease with everything needed to record it. */
export interface WholeLease extends ListedLease {
  readonly projectId: string;
  readonly userId: string;
  readonly reservations: readonly Reservation[];
}

/**
 * A lease that Blazar has not ended at its end: it is in use, and Blazar does not show its hosts any more. `end` is
 * the time until which it counts, in whole seconds: it is charged in advance, so that it holds its place.
 */
export interface OverdueLease extends WholeLease {
  readonly createdAt: Instant | undefined;
  /** When Blazar should have ended it. */
  readonly due: Instant;
}

/** A lease as Blazar shows it, with its actual allocations. */
export interface ShownLease extends WholeLease {
  /** When Blazar showed it in use, if that is before its start. Users can have Blazar start it, or move its start then. */
  readonly inUseAt: Instant | undefined;
  /** By our clock; `undefined` = not in Blazar's response. */
  readonly createdAt: Instant | undefined;
  /** The reservations with their actual counts and allocations. */
  readonly given: readonly Reservation[];
  /** Blazar has lost or replaced some of its resources, at an unknown time. */
  readonly hasChangedResources: boolean;
  readonly isCreating: boolean;
  /** Blazar is creating, changing or ending it: it may be different by now. */
  readonly isChanging: boolean;
  /**
   * It reserves hosts and has none: Blazar is still allocating, or has lost them all without recording it.
   */
  readonly isEmpty: boolean;
}

export function isOverdue(lease: ListedLease): lease is OverdueLease {
  return 'due' in lease;
}

/** A lease in use before its start counts as begun: at the latest `then`. */
export function begun(lease: ShownLease, then: Instant = lease.start): ShownLease {
  const { inUseAt, start } = lease;
  return { ...lease, start: inUseAt === undefined ? start : smaller(inUseAt, then) };
}

/** In the column `shown`: since its last request, a complete list did not contain the lease. */
export const ABSENT = '-';
/**
 * In the column `shown`: the lease existed when a change was requested, and Blazar has not shown it since.
 */
export const ASKED = '?';

/** Whether Blazar has shown the lease since its last request. */
export function isShown({ shown }: { readonly shown: string | null }): boolean {
  return shown !== null && shown !== ABSENT && shown !== ASKED;
}

/** A digest of the cost of a lease, as far as Blazar determines it. */
export function digestOf({ start, end, userId, reservations, given }: ShownLease): string {
  const parts = given.map(({ resource_type, max, amount, allocations = [] }, index) => [
    resource_type,
    max,
    amount,
    reservations[index]?.min,
    reservations[index]?.max,
    reservations[index]?.amount,
    allocations.map(({ id }) => String(id)).sort(),
  ]);
  return hash('sha256', JSON.stringify([String(start), String(end), userId, parts]), 'base64url');
}
