/** A form for a lease as the form of "Try it" has it: texts, as they were written. */
import { formatInstant, type Instant } from '../../../lease/dates.ts';
import { type Lease, leaseEnd, leaseStart, type Reservation } from '../../../lease/lease.ts';
import { parseResourceProperties } from '../../../lease/resource-properties.ts';

/** Types of reservations with fields of their own; others have a number and further attributes. */
const FORM_TYPES = ['physical:host', 'virtual:instance', 'flavor:instance', 'virtual:floatingip'] as const;

export const MOST_RESERVATIONS = 5;
/** How many simple comparisons of properties a reservation has. */
const COMPARISONS = 3;

/** Fields of a reservation: name in the form → where they are needed. */
const RESERVATION_FIELDS = [
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
export type ReservationField = (typeof RESERVATION_FIELDS)[number];

/** A simple comparison: `gpu`, `==`, `A100`. */
export interface Comparison {
  readonly name: string;
  readonly operator: string;
  readonly value: string;
}

export interface ReservationForm {
  readonly fields: Readonly<Record<ReservationField, string>>;
  readonly comparisons: readonly Comparison[];
}

export interface LeaseForm {
  readonly project: string;
  readonly user: string;
  readonly name: string;
  /** Empty = now. */
  readonly start: string;
  readonly end: string;
  readonly reservations: readonly ReservationForm[];
}

/** In characters: longer texts are cut, and then refused. */
const LONGEST = 4096;

/** Reads the fields of a form or of a URL. `types` = those that may be chosen; another is replaced by the first. */
export function readLeaseForm(form: URLSearchParams, types: readonly string[]): LeaseForm {
  const text = (name: string) => (form.get(name) ?? '').slice(0, LONGEST + 1);
  const reservations: ReservationForm[] = [];
  for (let index = 0; index < MOST_RESERVATIONS; index += 1) {
    const type = text(fieldName(index, 'type'));
    if (types.includes(type)) {
      reservations.push({
        fields: Object.fromEntries(
          RESERVATION_FIELDS.map((field) => [field, text(fieldName(index, field)).trim()]),
        ) as Record<ReservationField, string>,
        comparisons: Array.from({ length: COMPARISONS }, (_, row) => ({
          name: text(comparisonName(index, row, 'name')).trim(),
          operator: text(comparisonName(index, row, 'operator')).trim() || '==',
          value: text(comparisonName(index, row, 'value')).trim(),
        })),
      });
    }
  }
  return {
    project: text('project').trim(),
    user: text('user').trim(),
    name: text('name').trim(),
    start: text('start').trim(),
    end: text('end').trim(),
    reservations,
  };
}

/** `r0_min` */
export function fieldName(index: number, field: ReservationField): string {
  return `r${index}_${field}`;
}

/** `r0_p0_name` */
export function comparisonName(index: number, row: number, part: keyof Comparison): string {
  return `r${index}_p${row}_${part}`;
}

/** A reservation with nothing filled in, but one of it. */
export function newReservation(type: string): ReservationForm {
  const fields = Object.fromEntries(RESERVATION_FIELDS.map((field) => [field, ''])) as Record<
    ReservationField,
    string
  >;
  const one = type === 'physical:host' ? { min: '1', max: '1' } : { amount: '1' };
  return {
    fields: { ...fields, type, ...one },
    comparisons: Array.from({ length: COMPARISONS }, () => ({ name: '', operator: '==', value: '' })),
  };
}

/** The form as fields of a form; what is empty is left out. */
export function leaseFormFields({ reservations, ...plain }: LeaseForm): [string, string][] {
  const fields: [string, string][] = [
    ...Object.entries(plain),
    ...reservations.flatMap(({ fields: of, comparisons }, index) => [
      ...RESERVATION_FIELDS.map((field): [string, string] => [fieldName(index, field), of[field]]),
      ...comparisons.flatMap((one, row) =>
        one.name === '' && one.value === ''
          ? []
          : (['name', 'operator', 'value'] as const).map((part): [string, string] => [
              comparisonName(index, row, part),
              one[part],
            ]),
      ),
    ]),
  ];
  return fields.filter(([, value]) => value !== '');
}

const MINUTE = 60_000_000n;

/**
 * The form with the values of a lease that was suggested for it. Times to the minute, as Blazar's client takes them: a start rounded up, an
 * end rounded down, so that the lease gets no longer; what the form sends is tried again before anything is said about it.
 */
export function formOfLease(
  lease: Lease,
  { project, user, start: wished }: LeaseForm,
  asked: Lease,
): LeaseForm {
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
    reservations: (lease.reservations ?? []).map(formOfReservation),
  };
}

/** As a field of type `datetime-local` has it: `2026-12-01T09:00`. */
export function local(instant: Instant): string {
  return formatInstant(instant - (((instant % MINUTE) + MINUTE) % MINUTE)).slice(0, 16);
}

/** What the form has no field for is left out. */
export function formOfReservation(reservation: Reservation): ReservationForm {
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
      affinity: affinityText(reservation.affinity),
      addresses: Array.isArray(addresses) ? addresses.map(String).join(', ') : '',
      hypervisor: expressionText(reservation.hypervisor_properties),
      properties: comparisons === undefined ? properties : '',
      more: furtherText(reservation),
    },
  };
}

/** Clients send a text, and Blazar has it as a truth value. */
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
  if (FORM_TYPES.some((type) => type === reservation.resource_type)) {
    return '';
  }
  const further = Object.entries(reservation).filter(([key]) => !OWN.has(key));
  return further.length === 0 ? '' : JSON.stringify(Object.fromEntries(further));
}
