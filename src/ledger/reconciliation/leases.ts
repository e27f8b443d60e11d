/** A lease as Blazar has it: from a list in a file, or as the service has observed it. */
import { hash } from 'node:crypto';
import type { Instant } from '../../lease/dates.ts';
import type { Reservation } from '../../lease/lease.ts';

/** A lease of a list. `openstack reservation lease list` prints neither its owner nor its reservations. */
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

/** A listed lease with everything that recording it takes. */
export interface WholeLease extends ListedLease {
  readonly projectId: string;
  readonly userId: string;
  readonly reservations: readonly Reservation[];
}

/** A lease as Blazar shows it, with what it was really given. */
export interface ShownLease extends WholeLease {
  /** By our clock; `undefined` = Blazar does not say. */
  readonly createdAt: Instant | undefined;
  /** The reservations, but each with the counts and the allocations that it has. */
  readonly given: readonly Reservation[];
  /** Blazar has lost or replaced resources of it, at a time that is not known. */
  readonly isHealed: boolean;
  /** Blazar is creating, changing or ending it at the moment: it may be different by now. */
  readonly isChanging: boolean;
  /** It has reserved hosts, and has none of them: Blazar is at work on it, or has lost them all without a word. Time tells. */
  readonly isEmpty: boolean;
}

/** In the column `shown`: a complete list without the lease, since it was asked for. */
export const ABSENT = '-';
/** In the column `shown`: it was there when a change of it was asked for, and Blazar has not shown it since. */
export const ASKED = '?';

/** Whether Blazar has shown the lease since it was last asked for. */
export function isShown({ shown }: { readonly shown: string | null }): boolean {
  return shown !== null && shown !== ABSENT && shown !== ASKED;
}

/** A digest of what a lease costs, as far as Blazar decides it. */
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
