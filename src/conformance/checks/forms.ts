/** Forms of a request: missing and additional attributes, and formats of dates. */
import {
  type Check,
  createdLease,
  dayLonger,
  expectSameVerdict,
  expectVerdict,
  type Finding,
  type Run,
  SOURCE,
  VARIANT_OF_CREATE,
} from '../check.ts';
import { type Fields, host, hosts, isoText } from '../leases.ts';

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
      'When the caller changes a reservation, Blazar sends only what the caller gave, the type, and the new allocations.',
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
        allocations: [host(1), host(2)],
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
      const others = findings.length === 0 ? [] : await dates(run, (date) => `${isoText(date)}Z`);
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
    run: (run) => dates(run, (date) => `${isoText(date)}.012345`),
  },
  {
    id: 'date-with-offset',
    title: 'dates with an offset are understood',
    protocol: 'Dates are in ISO 8601; those of the documented example have an offset.',
    sources: [SOURCE.blazarDocs, SOURCE.unsaid],
    ...VARIANT_OF_CREATE,
    run: (run) => dates(run, (date) => `${isoText(date)}+02:00`),
  },
  {
    id: 'date-with-space',
    title: 'dates of the form YYYY-MM-DD HH:MM are understood, with and without seconds',
    protocol:
      'Blazar passes before_end_date on as the user wrote it, YYYY-MM-DD HH:MM, and early releases wrote all dates with a space instead of the T.',
    sources: [SOURCE.blazarCreate, SOURCE.unsaid],
    ...VARIANT_OF_CREATE,
    run: async (run) => [
      ...(await dates(run, (date) => isoText(date).slice(0, 16).replace('T', ' '), { withBeforeEnd: true })),
      ...(await dates(run, (date) => isoText(date).replace('T', ' '))),
    ],
  },
  {
    id: 'documented-example',
    title: 'the documented example is understood, where the lease ends at end_time',
    protocol:
      'In the documented example a lease has neither a name nor an owner, and its end is called end_time.',
    sources: [SOURCE.blazarDocs, SOURCE.unsaid],
    needs: ['create'],
    run: documentedExample,
  },
  {
    id: 'unknown-fields',
    title: 'undocumented attributes do not change the answer',
    protocol:
      'Requests have more attributes than are documented, such as the properties that a site gives its hosts, and each release adds some. Unknown ones are ignored.',
    sources: [SOURCE.keepInMind, SOURCE.unsaid],
    ...VARIANT_OF_CREATE,
    run: unknownFields,
  },
];

async function dates(
  { target, leases }: Run,
  write: (date: Date) => string,
  { withBeforeEnd = false } = {},
): Promise<Finding[]> {
  const start_date = write(leases.start);
  const end_date = write(leases.end);
  const before_end_date = withBeforeEnd ? write(new Date(leases.end.getTime() - 3_600_000)) : '';
  const lease = leases.make({ lease: { start_date, end_date, before_end_date } });
  const also = withBeforeEnd ? `, before_end_date ${before_end_date}` : '';
  return expectVerdict(await target.ask('create', lease, `a lease from ${start_date} to ${end_date}${also}`));
}

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

/** At every level. */
function unknownFields(run: Run): Promise<Finding[]> {
  const { target, leases } = run;
  const unknown: Fields = { x_unknown_text: 'a text', x_unknown_object: { list: [1, null, true] } };
  const made = leases.make({
    context: unknown,
    lease: unknown,
    reservations: [{ ...hosts(1), ...unknown, allocations: [{ ...host(1), ...unknown }] }],
  });
  const strange = { ...made, create: { ...made.create, ...unknown } };
  const ask = () => target.ask('create', strange, 'the same lease with further attributes at every level');
  return expectSameVerdict(run, ask, 'without these attributes');
}
