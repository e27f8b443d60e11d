/** The fields of the form "Try a lease": texts as they were entered. */
import { formatInstant, type Instant, leaseEnd, leaseStart } from '../../../lease/dates.ts';
import type { Lease, Reservation } from '../../../lease/lease.ts';
import { parseResourceProperties } from '../../../lease/resource-properties.ts';

/** Types of reservations with their own fields; others have a number and further attributes. */
const FORM_TYPES = ['physical:host', 'virtual:instance', 'flavor:instance', 'virtual:floatingip'] as const;

export const MOST_RESERVATIONS = 5;
/** Rows for simple comparisons of properties, each with three fields: `gpu`, `==`, `A100`. */
export const COMPARISONS = [0, 1, 2] as const;
const PARTS = ['name', 'operator', 'value'] as const;
type ComparisonField = `p${(typeof COMPARISONS)[number]}_${(typeof PARTS)[number]}`;

const PLAIN_FIELDS = [
  'type',
  'min',
  'max',
  'amount',
  'vcpus',
  'memory_mb',
  'disk_gb',
  'affinity',
  'flavor_id',
  'network_id',
  'addresses',
  'hypervisor',
  'properties',
  'more',
] as const;
const RESERVATION_FIELDS: readonly ReservationField[] = [
  ...PLAIN_FIELDS,
  ...COMPARISONS.flatMap((row) => PARTS.map((part) => `p${row}_${part}` as const)),
];
export type ReservationField = (typeof PLAIN_FIELDS)[number] | ComparisonField;

export type ReservationForm = Readonly<Record<ReservationField, string>>;

export interface LeaseForm {
  readonly project: string;
  readonly user: string;
  readonly name: string;
  /** Empty = now. */
  readonly start: string;
  readonly end: string;
  readonly reservations: readonly ReservationForm[];
}

/** In characters: longer texts are truncated, then rejected. */
const LONGEST = 4096;

/** Reads the fields of a form or a URL. `types`: types to choose from; other reservations are dropped. */
export function readLeaseForm(form: URLSearchParams, types: readonly string[]): LeaseForm {
  const text = (name: string) => (form.get(name) ?? '').slice(0, LONGEST + 1).trim();
  return {
    project: text('project'),
    user: text('user'),
    name: text('name'),
    start: text('start'),
    end: text('end'),
    reservations: Array.from({ length: MOST_RESERVATIONS }, (_, index) =>
      reservationForm((field) => text(fieldName(index, field))),
    ).filter(({ type }) => types.includes(type)),
  };
}

/** The operator of a comparison is never empty. */
function reservationForm(text: (field: ReservationField) => string): ReservationForm {
  return Object.fromEntries(
    RESERVATION_FIELDS.map((field) => [field, text(field) || (field.endsWith('_operator') ? '==' : '')]),
  ) as Record<ReservationField, string>;
}

/** `r0_min`, `r0_p0_name` */
export function fieldName(index: number, field: ReservationField): string {
  return `r${index}_${field}`;
}

/** An empty reservation of one item. */
export function newReservation(type: string): ReservationForm {
  const one = type === 'physical:host' ? { min: '1', max: '1' } : { amount: '1' };
  return { ...reservationForm(() => ''), type, ...one };
}

/** The form as names and values of fields; empty ones are omitted. */
export function leaseFormFields({ reservations, ...plain }: LeaseForm): [string, string][] {
  const fields = [
    ...Object.entries(plain),
    ...reservations.flatMap((one, index) =>
      RESERVATION_FIELDS.map((field): [string, string] => [fieldName(index, field), one[field]]),
    ),
  ];
  return fields.filter(([, value]) => value !== '');
}

const MINUTE = 60_000_000n;

/**
 * The form with the values of a suggested lease. Blazar's client takes times to the minute: the start is
 * rounded up and the end down, so that the lease does not become longer. What the form sends is checked
 * again.
 */
export function formOfLease(
  lease: Lease,
  { project, user, start: wished }: LeaseForm,
  asked: Lease,
): LeaseForm {
  const start = leaseStart(lease);
  // "Now" stays now, however long the user waits.
  const isUnmoved = wished === '' && start === leaseStart(asked);
  const end = leaseEnd(lease);
  return {
    project,
    user,
    name: typeof lease.name === 'string' ? lease.name : '',
    start: start === undefined || isUnmoved ? wished : local(start + MINUTE - 1n),
    end: end === undefined ? '' : local(end),
    reservations: (lease.reservations ?? []).map(formOfReservation),
  };
}

/** In the format of `datetime-local` fields: `2026-12-01T09:00`. */
export function local(instant: Instant): string {
  return formatInstant(instant - (((instant % MINUTE) + MINUTE) % MINUTE)).slice(0, 16);
}

/** Attributes without a field are omitted. */
export function formOfReservation(reservation: Reservation): ReservationForm {
  const { resource_type: type = '', required_floatingips: addresses } = reservation;
  const properties = expressionText(reservation.resource_properties);
  const comparisons = comparisonsOf(properties);
  const special: Partial<Record<ReservationField, string>> = {
    type,
    affinity: affinityText(reservation.affinity),
    addresses: Array.isArray(addresses) ? addresses.map(String).join(', ') : '',
    hypervisor: expressionText(reservation.hypervisor_properties),
    properties: comparisons === undefined ? properties : '',
    more: furtherText(reservation),
    ...Object.fromEntries(
      COMPARISONS.flatMap((row) =>
        PARTS.map((part) => [`p${row}_${part}`, comparisons?.[row]?.[part] ?? '']),
      ),
    ),
  };
  return reservationForm((field) => {
    const value = special[field] ?? reservation[field];
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  });
}

/** Clients send a text, Blazar stores a boolean. */
function affinityText(value: unknown): string {
  return ['True', 'False'].find((one) => one.toLowerCase() === String(value).toLowerCase()) ?? '';
}

function expressionText(value: unknown): string {
  return typeof value === 'string'
    ? value
    : value === undefined || value === null
      ? ''
      : JSON.stringify(value);
}

/** `undefined` = too many, or not expressible by the simple fields. */
function comparisonsOf(text: string) {
  try {
    const found = parseResourceProperties(text);
    return found.length === 0 || found.length > COMPARISONS.length ? undefined : found;
  } catch {
    return undefined;
  }
}

const OWN = new Set(['resource_type', 'min', 'max', 'amount', 'id', 'allocations']);

/** For types without their own fields: all further attributes. */
function furtherText(reservation: Reservation): string {
  if (FORM_TYPES.some((type) => type === reservation.resource_type)) {
    return '';
  }
  const further = Object.entries(reservation).filter(([key]) => !OWN.has(key));
  return further.length === 0 ? '' : JSON.stringify(Object.fromEntries(further));
}
