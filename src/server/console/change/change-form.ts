/** The form for a change of a lease: its fields, their change, and the command of Blazar's client. */
import { type Lease, leaseEnd, leaseStart, type Reservation } from '../../../lease/lease.ts';
import type { RecordedLease } from '../../../ledger/reports/one-lease.ts';
import { hasBegun, type LeaseChange, leaseChangeSchema } from '../../estimate/changed-lease.ts';
import type { FieldEntry } from '../parts/fields.tsx';
import { visible } from '../parts/parts.tsx';
import { quoted } from '../try/client-syntax.ts';
import { fieldName, local } from '../try/lease-form.ts';

/** Name of a field → text. */
export type Values = Readonly<Record<string, string>>;

/** In characters: longer texts are truncated, then rejected. */
const LONGEST = 40;
const COUNTS = ['min', 'max', 'amount'] as const;

/** Field values of a lease; `other`: the lease after the change. */
export function fieldsOf(lease: RecordedLease, other?: Lease): Values {
  const start = (other && leaseStart(other)) ?? lease.start;
  const end = (other && leaseEnd(other)) ?? lease.end;
  const reservations: readonly Reservation[] = other?.reservations ?? lease.reservations;
  return {
    start: local(start),
    end: local(end),
    ...Object.fromEntries(
      reservations.flatMap((one, index) =>
        COUNTS.flatMap((count) =>
          one[count] === undefined ? [] : [[fieldName(index, count), String(one[count])]],
        ),
      ),
    ),
  };
}

/** Values from the form or the URL; missing ones are those of the lease. */
export function valuesOf(lease: RecordedLease, sent: URLSearchParams): Values {
  return Object.fromEntries(
    Object.entries(fieldsOf(lease)).map(([name, value]) => [
      name,
      (sent.get(name) ?? value).trim().slice(0, LONGEST + 1),
    ]),
  );
}

/** `now`: the start of a lease that has begun cannot be changed. */
export function formFields(lease: RecordedLease, now: bigint): FieldEntry[] {
  const date = { type: 'datetime-local', isRequired: true } as const;
  const count = { type: 'number', min: '1', isRequired: true } as const;
  return [
    ...(hasBegun(lease, now) ? [] : [{ ...date, name: 'start', label: 'Start (UTC)' }]),
    { ...date, name: 'end', label: 'End (UTC)' },
    ...lease.reservations.flatMap(({ resource_type: type }, index) =>
      type === 'physical:host'
        ? [
            { ...count, name: fieldName(index, 'min'), label: 'Hosts, at least' },
            { ...count, name: fieldName(index, 'max'), label: 'Hosts, at most' },
          ]
        : [{ ...count, name: fieldName(index, 'amount'), label: `Number of ${visible(type)}` }],
    ),
  ];
}

/** The changed attributes, or the mistakes by field. */
export function changeOf(
  lease: RecordedLease,
  values: Values,
): { readonly change: Partial<LeaseChange> } | { readonly mistakes: ReadonlyMap<string, string> } {
  const before = fieldsOf(lease);
  const isOther = (name: string) => values[name] !== before[name];
  const asked = {
    ...(isOther('start') && { start_date: values.start }),
    ...(isOther('end') && { end_date: values.end }),
    reservations: lease.reservations.flatMap(({ resource_type }, index) => {
      const names = COUNTS.map((count) => [count, fieldName(index, count)] as const);
      const counts = names.flatMap(([count, name]) => {
        const text = values[name];
        return text === undefined ? [] : [[count, /^\d{1,7}$/.test(text) ? Number(text) : text]];
      });
      return names.some(([, name]) => isOther(name))
        ? [{ resource_type, ...Object.fromEntries(counts) }]
        : [];
    }),
  };
  const { data, error } = leaseChangeSchema.safeParse(asked);
  if (data === undefined) {
    return {
      mistakes: new Map(
        error.issues.map(({ path, message }) => [fieldOf(lease, asked, path.map(String).join('.')), message]),
      ),
    };
  }
  const { reservations, ...dates } = data;
  return { change: reservations.length === 0 ? dates : data };
}

/** The form field for a field of a change: `r0_max` for `reservations.0.max`. */
export function fieldOf(
  lease: RecordedLease,
  { reservations = [] }: { readonly reservations?: readonly { readonly resource_type: string }[] },
  field: string,
): string {
  const [, position = '', count = ''] = /^reservations\.(\d+)\.(\w+)$/.exec(field) ?? [];
  const type = reservations[Number(position)]?.resource_type;
  const index = lease.reservations.findIndex(({ resource_type }) => resource_type === type);
  const found = COUNTS.find((one) => one === count);
  return found !== undefined ? fieldName(index, found) : field === 'start_date' ? 'start' : 'end';
}

/** For a POSIX shell. Ids of reservations are placeholders: only Blazar has them. */
export function changeCommand(leaseId: string, change: Partial<LeaseChange>): string {
  const { start_date, end_date, reservations = [] } = change;
  const words = [
    'openstack reservation lease update',
    ...(start_date === undefined ? [] : [`--start-date ${quoted(start_date)}`]),
    ...(end_date === undefined ? [] : [`--end-date ${quoted(end_date)}`]),
    ...reservations.map(({ resource_type: _, ...counts }) => {
      const pairs = Object.entries(counts).map(([name, count]) => `${name}=${count}`);
      return `--reservation id=RESERVATION_ID,${pairs.join(',')}`;
    }),
    `${leaseId.startsWith('-') ? '-- ' : ''}${quoted(leaseId)}`,
  ];
  return words.join(' \\\n  ');
}
