/** Forms of a request: missing and additional attributes, and formats of dates. */
import {
  type Check,
  createdLease,
  dayLonger,
  expectSameVerdict,
  expectVerdict,
  type Finding,
  type Form,
  type Run,
  SOURCE,
  VARIANT_OF_CREATE,
} from '../check.ts';
import { type Fields, host, isoText } from '../leases.ts';

export const formChecks: readonly Check[] = [
  {
    id: 'update-partial-lease',
    title: 'an update whose lease has no name and no owner is answered with 204 or 403',
    protocol:
      'The lease of a check-update has both dates, the reservations, and what the caller changes. Everything else is in current_lease.',
    sources: [SOURCE.unsaid, SOURCE.blazarUpdate],
    needs: ['update'],
    variant: 'update-physical-host',
    run: async (run) => {
      const lease = await createdLease(run);
      const changes = { ...dayLonger(run.leases), reservations: lease.current.reservations };
      const what = 'a lease with dates and reservations only';
      return expectVerdict(await run.target.ask('update', lease, what, { changes }));
    },
  },
  {
    id: 'update-partial-reservation',
    title: 'an update whose reservation has only what the caller changes is answered with 204 or 403',
    protocol:
      'When the caller changes a reservation, Blazar sends only what the caller gave, the type, and candidates for its size before.',
    sources: [SOURCE.blazarUpdate, SOURCE.unsaid],
    needs: ['update'],
    variant: 'update-physical-host',
    run: async (run) => {
      const lease = await createdLease(run);
      const [reservation] = lease.current.reservations;
      const changed = {
        id: reservation?.id,
        max: 2,
        resource_type: 'physical:host',
        allocations: [host(1)],
      };
      const { name, start_date, end_date } = lease.current;
      const changes = { name, start_date, end_date, reservations: [changed] };
      const what = 'a reservation with id, max, type and allocations only';
      return expectVerdict(await run.target.ask('update', lease, what, { changes }));
    },
  },
  {
    id: 'region-null',
    title: 'a context whose region_name is null is understood',
    protocol: 'Blazar sends its option os_region_name as region_name, and null if it is not set.',
    sources: [SOURCE.blazarContext],
    ...VARIANT_OF_CREATE,
    run: async ({ target, leases }) => {
      const lease = leases.make({ context: { region_name: null } });
      return expectVerdict(await target.ask('create', lease, 'a lease whose context names no region'));
    },
  },
  {
    id: 'date-without-offset',
    title: 'dates without an offset are understood',
    protocol: 'Dates are in ISO 8601. Blazar writes them in UTC, without an offset.',
    sources: [SOURCE.unsaid],
    needs: ['create'],
    run: async (run) => {
      const findings = await dates(run, isoText);
      const others = findings.length === 0 ? [] : await dates(run, inUtc);
      return others.length === 0
        ? findings
        : { skipped: 'a lease whose dates have an offset is not understood either' };
    },
  },
  {
    id: 'date-with-fraction',
    title: 'dates with a fraction of a second are understood',
    protocol: 'Dates are in ISO 8601, to the microsecond.',
    sources: [SOURCE.blazarDocs],
    ...VARIANT_OF_CREATE,
    run: (run) => expectSameVerdict(run, inForm(withFraction)),
  },
  {
    id: 'date-with-offset',
    title: 'dates with an offset are understood',
    protocol:
      'Dates are in ISO 8601; those of the documented example have an offset. The same time with another offset is the same lease.',
    sources: [SOURCE.blazarDocs, SOURCE.unsaid],
    ...VARIANT_OF_CREATE,
    run: (run) =>
      // To a service that ignores offsets, the first looks shorter by a day and two hours, the second longer.
      expectSameVerdict(
        run,
        inForm(withOffset(14), withOffset(-12)),
        inForm(withOffset(-12), withOffset(14)),
        // One with an offset and one without look longer or shorter to one that reads the latter in its own zone.
        inForm(isoText, inUtc),
        inForm(inUtc, isoText),
      ),
  },
  {
    id: 'date-with-space',
    title: 'dates of the form YYYY-MM-DD HH:MM are understood, with and without seconds',
    protocol:
      'Blazar passes before_end_date on as the user wrote it, YYYY-MM-DD HH:MM, and early releases wrote all dates with a space instead of the T.',
    sources: [SOURCE.blazarCreate, SOURCE.unsaid],
    ...VARIANT_OF_CREATE,
    run: (run) => expectSameVerdict(run, inForm(toTheMinute), inForm(withSpace)),
  },
  {
    id: 'documented-example',
    title: 'the documented example is understood, where the lease ends at end_time',
    protocol:
      'In the documented example a lease has neither a name nor an owner, and its end is called end_time.',
    sources: [SOURCE.blazarDocs, SOURCE.unsaid],
    needs: ['create'],
    run: async (run) => [
      ...(await documentedExample(run)),
      ...(await expectSameVerdict(run, endingAtEndTime)),
    ],
  },
  {
    id: 'unknown-fields',
    title: 'undocumented attributes do not change the answer',
    protocol:
      'Requests have more attributes than are documented, such as the properties that a site gives its hosts, and each release adds some. Unknown ones are ignored.',
    sources: [SOURCE.keepInMind, SOURCE.unsaid],
    ...VARIANT_OF_CREATE,
    run: (run) => expectSameVerdict(run, withUnknownFields),
  },
];

async function dates({ target, leases }: Run, write: (date: Date) => string): Promise<Finding[]> {
  const start_date = write(leases.start);
  const end_date = write(leases.end);
  const lease = leases.make({ lease: { start_date, end_date } });
  return expectVerdict(await target.ask('create', lease, `a lease from ${start_date} to ${end_date}`));
}

/** The same dates in another form. */
function inForm(writeStart: (date: Date) => string, writeEnd = writeStart): Form {
  return {
    as: 'with its dates as Blazar writes them',
    write({ lease, ...others }) {
      const start = dateOf(lease.start_date);
      const end = dateOf(lease.end_date ?? lease.end_time);
      if (start === undefined || end === undefined) {
        return undefined;
      }
      const dates = { start_date: writeStart(start), end_date: writeEnd(end) };
      return {
        ...others,
        // Passed on as the user wrote it.
        lease: { ...lease, ...dates, before_end_date: toTheMinute(start) },
        what: `from ${dates.start_date} to ${dates.end_date}`,
      };
    },
  };
}

const withFraction = (date: Date) => `${isoText(date)}.000000`;
const withSpace = (date: Date) => isoText(date).replace('T', ' ');
const toTheMinute = (date: Date) => withSpace(date).slice(0, 16);

/** `undefined` if not every form can hold it: `YYYY-MM-DD HH:MM` has no seconds. */
export function dateOf(value: unknown): Date | undefined {
  const text = String(value).replace(' ', 'T');
  const date = new Date(/T.*(Z|[+-]\d\d(:?\d\d)?)$/i.test(text) ? text : `${text}Z`);
  return date.getTime() % 60_000 === 0 ? date : undefined;
}

const inUtc = (date: Date) => `${isoText(date)}Z`;
const withOffset = (hours: number) => (date: Date) =>
  `${isoText(new Date(date.getTime() + hours * 3_600_000))}${hours < 0 ? '-' : '+'}${Math.abs(hours)}:00`;

const endingAtEndTime: Form = {
  as: 'with end_date',
  write: ({ lease: { end_date, ...lease }, ...others }) => ({
    ...others,
    lease: { end_time: end_date, ...lease, end_date: undefined },
    what: 'with end_time instead of end_date',
  }),
};

/** Only the documented attributes, with dates in the future. */
async function documentedExample({ target, leases }: Run): Promise<Finding[]> {
  const written = (date: Date) => `${isoText(date)}.012345+02:00`;
  const allocation = (id: string) => ({
    id,
    hypervisor_hostname: `32af5a7a-e7a3-4883-a643-828e3f63bf5${id}`,
    extra: { availability_zone: 'az1' },
  });
  const lease = leases.make({
    lease: {
      start_date: written(leases.start),
      end_time: written(leases.end),
      end_date: undefined,
      before_end_date: undefined,
      name: undefined,
      status: undefined,
      user_id: undefined,
      project_id: undefined,
    },
    reservations: [
      {
        resource_type: 'physical:host',
        min: 2,
        max: 3,
        hypervisor_properties: '[]',
        resource_properties: '["==", "$availability_zone", "az1"]',
        allocations: ['1', '2'].map(allocation),
      },
    ],
  });
  return expectVerdict(await target.ask('create', lease, 'the documented example'));
}

/** Not in ASCII: in UTF-8, as texts in JSON are. */
const UNKNOWN: Fields = { x_unknown_text: 'für 東京 🙂', x_unknown_object: { list: [1, null, true] } };

/** At every level. */
const withUnknownFields: Form = {
  as: 'without these attributes',
  write: ({ context, lease, reservations }) => ({
    context: { ...context, ...UNKNOWN },
    lease: { ...lease, ...UNKNOWN },
    reservations: reservations.map((one) => ({
      ...one,
      ...UNKNOWN,
      allocations: Array.isArray(one.allocations)
        ? one.allocations.map((each) => ({ ...each, ...UNKNOWN }))
        : one.allocations,
    })),
    further: UNKNOWN,
    what: 'with further attributes at every level',
  }),
};
