/** Estimates a change of a lease: whether it would be allowed, its cost, and alternatives. */

import { leaseEnd, leaseStart } from '../../../lease/dates.ts';
import type { Lease, Reservation } from '../../../lease/lease.ts';
import type { RecordedLease } from '../../../ledger/reports/one-lease.ts';
import { learnNames, pathId } from '../../api/shown.ts';
import {
  changeableLease,
  changeRequest,
  changeTo,
  hasBegun,
  type LeaseChange,
  leaseChangeSchema,
} from '../../estimate/changed-lease.ts';
import { cloudOf, filterNow } from '../../estimate/estimate-lease.ts';
import { UnusableLeaseError } from '../../estimate/wanted-lease.ts';
import { type ConsolePage, changePath, type PageAnswer, type PageRequest } from '../page.ts';
import { ChangeForm, type FieldEntry, Fields } from '../parts/fields.tsx';
import { Account, LeaseName, ProjectLink, Small, visible } from '../parts/parts.tsx';
import { quoted } from '../try/client-syntax.ts';
import { fieldName, local } from '../try/lease-form.ts';
import { type Shown, tried, tryPage } from '../try/try-answer.tsx';

const page = { path: '/leases/{lease_id}/change', action: 'estimate' } as const;

export const CHANGE_PAGES: readonly ConsolePage[] = [
  {
    ...page,
    method: 'GET',
    answer: async (request) => {
      const lease = await leaseOf(request);
      return shown(request, lease, valuesOf(lease, request.query));
    },
  },
  {
    ...page,
    method: 'POST',
    answer: async (request) => {
      const lease = await leaseOf(request);
      const values = valuesOf(lease, request.form);
      const said = request.form.has('do') ? await answerTo(request, lease, values) : {};
      return shown(request, lease, values, said);
    },
  },
];

function leaseOf(request: PageRequest): Promise<RecordedLease> {
  return changeableLease(request, pathId(request.params, 'lease_id'));
}

async function answerTo(request: PageRequest, lease: RecordedLease, values: Values): Promise<Shown> {
  const { generation } = request;
  const read = changeOf(lease, values);
  if ('mistakes' in read) {
    return { mistakes: read.mistakes };
  }
  const { change } = read;
  if (Object.keys(change).length === 0) {
    return { error: 'Nothing would change: these are the values of the lease.' };
  }
  try {
    const whole = { reservations: [], ...change };
    const asked = changeRequest(lease, whole, cloudOf(generation), filterNow(generation));
    const command = changeCommand(lease.leaseId, changeTo(asked, asked.lease));
    const answer = await tried(request, {
      request: asked,
      what: 'change',
      action: changePath(lease.leaseId),
      howToGet: <HowToGet command={command} />,
      fieldsOf: (suggested) => Object.entries(fieldsOf(lease, suggested)),
    });
    return { answer };
  } catch (thrown) {
    if (thrown instanceof UnusableLeaseError) {
      return { mistakes: new Map([[fieldOf(lease, change, thrown.field ?? ''), thrown.message]]) };
    }
    throw thrown;
  }
}

function HowToGet({ command }: { readonly command: string }) {
  return (
    <>
      <p>In a shell, as a member of this project:</p>
      <pre class="command">{command}</pre>
      {command.includes('RESERVATION_ID') && (
        <p class="hint">
          Replace RESERVATION_ID by the id of the reservation: <code>openstack reservation lease show</code>{' '}
          prints it.
        </p>
      )}
    </>
  );
}

async function shown(
  request: PageRequest,
  lease: RecordedLease,
  values: Values,
  said: Shown = {},
): Promise<PageAnswer> {
  const { csrf, generation } = request;
  const { leaseId, name, projectId, userId } = lease;
  await learnNames(request, [lease]);
  return tryPage(
    {
      title: 'Change a lease',
      asked: 'The change',
      about: (
        <p>
          <LeaseName name={name} /> <Small text={leaseId} look="id" /> of <Account kind="user" id={userId} />{' '}
          in <ProjectLink id={projectId} />
        </p>
      ),
      form: (
        <ChangeForm action={changePath(leaseId)} csrf={csrf}>
          <div class="fields">
            <Fields
              fields={formFields(lease, filterNow(generation))}
              values={values}
              mistakes={said.mistakes ?? new Map()}
            />
          </div>
          <button type="submit" name="do" value="try">
            Try it
          </button>
        </ChangeForm>
      ),
    },
    said,
  );
}

/** Name of a field → text. */
type Values = Readonly<Record<string, string>>;

/** In characters: longer texts are truncated, then rejected. */
const LONGEST = 40;
const COUNTS = ['min', 'max', 'amount'] as const;

/** Field values of a lease; `other`: the lease after the change. */
function fieldsOf(lease: RecordedLease, other?: Lease): Values {
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
function valuesOf(lease: RecordedLease, sent: URLSearchParams): Values {
  return Object.fromEntries(
    Object.entries(fieldsOf(lease)).map(([name, value]) => [
      name,
      (sent.get(name) ?? value).trim().slice(0, LONGEST + 1),
    ]),
  );
}

/** `now`: the start of a lease that has begun cannot be changed. */
function formFields(lease: RecordedLease, now: bigint): FieldEntry[] {
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
function changeOf(
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
function fieldOf(
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
function changeCommand(leaseId: string, change: Partial<LeaseChange>): string {
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
