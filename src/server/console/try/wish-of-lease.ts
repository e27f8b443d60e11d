/** From a lease, such as a suggested one, back to the fields of the form. */
import { formatInstant, type Instant } from '../../../lease/dates.ts';
import { type Lease, leaseEnd, leaseStart, type Reservation } from '../../../lease/lease.ts';
import { parseResourceProperties } from '../../../lease/resource-properties.ts';
import { COMPARISONS, newReservation, type Wish, type WishedReservation } from './wish.ts';

const MINUTE = 60_000_000n;

/**
 * The wish with the values of a lease that was suggested for it. Times to the minute, as Blazar's client takes them: a start rounded up, an
 * end rounded down, so that the lease gets no longer; what the form sends is tried again before anything is said about it.
 */
export function wishOf(lease: Lease, { project, user, start: wished }: Wish, asked: Lease): Wish {
  const start = leaseStart(lease);
  // "Now" stays now, however long somebody thinks about it.
  const isUnmoved = wished === '' && start === leaseStart(asked);
  const end = leaseEnd(lease);
  return {
    project,
    user,
    name: typeof lease.name === 'string' ? lease.name : '',
    start: start === undefined || isUnmoved ? wished : local(start + MINUTE - 1n),
    end: end === undefined ? '' : local(end),
    reservations: (lease.reservations ?? []).map(wishedOf),
  };
}

/** As a field of type `datetime-local` has it: `2026-12-01T09:00`. */
export function local(instant: Instant): string {
  return formatInstant(instant - (((instant % MINUTE) + MINUTE) % MINUTE)).slice(0, 16);
}

function wishedOf(reservation: Reservation): WishedReservation {
  const { resource_type: type = '' } = reservation;
  const empty = newReservation(type);
  const text = (key: string) => {
    const value = reservation[key];
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  };
  const properties = expressionText(reservation.resource_properties);
  const comparisons = comparisonsOf(properties);
  const addresses = reservation.required_floatingips;
  return {
    comparisons: empty.comparisons.map((one, row) => comparisons?.[row] ?? one),
    fields: {
      ...{ type, min: text('min'), max: text('max'), amount: text('amount') },
      ...{ vcpus: text('vcpus'), memory_mb: text('memory_mb'), disk_gb: text('disk_gb') },
      ...{ flavor_id: text('flavor_id'), network_id: text('network_id') },
      affinity: ['True', 'False'].includes(text('affinity')) ? text('affinity') : '',
      addresses: Array.isArray(addresses) ? addresses.map(String).join(', ') : '',
      hypervisor: expressionText(reservation.hypervisor_properties),
      properties: comparisons === undefined ? properties : '',
      more: furtherText(reservation),
    },
  };
}

function expressionText(value: unknown): string {
  return typeof value === 'string'
    ? value
    : value === undefined || value === null
      ? ''
      : JSON.stringify(value);
}

/** `undefined` = too many, or nothing that the simple fields can hold. */
function comparisonsOf(text: string) {
  try {
    const found = parseResourceProperties(text);
    return found.length === 0 || found.length > COMPARISONS ? undefined : found;
  } catch {
    return undefined;
  }
}

const OWN = new Set(['resource_type', 'min', 'max', 'amount', 'id', 'allocations']);

/** Of types without fields of their own: all further attributes. */
function furtherText(reservation: Reservation): string {
  if (
    ['physical:host', 'virtual:instance', 'flavor:instance', 'virtual:floatingip'].includes(
      reservation.resource_type ?? '',
    )
  ) {
    return '';
  }
  const further = Object.entries(reservation).filter(([key]) => !OWN.has(key));
  return further.length === 0 ? '' : JSON.stringify(Object.fromEntries(further));
}
