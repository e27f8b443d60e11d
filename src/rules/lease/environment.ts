/** The names in rules for leases: variables, their attributes, and functions. */

import { toInstant } from '../../lease/dates.ts';
import { MAX_ALLOCATIONS, MAX_RESERVATIONS } from '../../lease/lease.ts';
import { objectType, RuleEnvironment } from '../cel/environment.ts';
import { Failure, type Frame } from '../cel/frame.ts';
import { type CelFunction, SCALAR, textShape, USUAL_TEXT } from '../cel/function.ts';
import { Timestamp } from '../cel/values.ts';
import { LeaseView, ReservationView } from './lease-view.ts';
import { ContextView, type LedgerView, ProjectView, RequestInfo, UserView } from './request-view.ts';

const DATE = /^\d{4}-\d\d-\d\d$/;

type DocumentedFunction = CelFunction & { readonly description: string };

/** Signatures and implementations. */
const LEASE_FUNCTIONS: readonly (readonly [string, DocumentedFunction])[] = [
  [
    'hours(Lease): double',
    {
      description: 'The length of a lease in hours.',
      run: (_, lease) => leaseOf(lease).hours ?? new Failure('the lease has no start or no end'),
    },
  ],
  [
    'size(Lease, string): int',
    {
      description:
        'How much of a resource type a lease may get, over all reservations: `size(lease, "physical:host")`.',
      run: ({ meter }, lease, type) => {
        const { reservations } = leaseOf(lease);
        meter.spend(reservations.length);
        let total = 0n;
        for (const { resource_type, size } of reservations) {
          if (resource_type === type) {
            if (size === undefined) {
              return new Failure('the size of a reservation is not known');
            }
            total += size;
          }
        }
        return total;
      },
      estimate: () => ({ steps: 1 + MAX_RESERVATIONS, shape: SCALAR }),
    },
  ],
  [
    'property(Reservation, string): string',
    {
      description:
        'The value that a reservation requires of a property with `==`; an empty text if it requires none.',
      refuse: ([, name]) =>
        typeof name === 'string' && name.startsWith('$')
          ? `write the property without "$": property(r, ${JSON.stringify(name.slice(1, 50))})`
          : undefined,
      run: (_, reservation, name) => reservationOf(reservation).properties.get(String(name)) ?? '',
      estimate: () => ({ steps: 1, shape: textShape(USUAL_TEXT) }),
    },
  ],
  [
    'overlaps(Lease, string, string): bool',
    {
      description:
        'Whether a lease is under way at any time between two times: dates such as `2026-12-20`, which begin at midnight UTC and include the last day, or times such as `2026-12-20T08:00:00+01:00`, in UTC without a zone.',
      constants: [1, 2],
      prepare: boundOf,
      refuse: ([, from, until]) =>
        typeof from === 'string' && typeof until === 'string' && boundOf(until).end <= boundOf(from).start
          ? 'overlaps() got an end that is not after the start; write the earlier time first'
          : undefined,
      run: (_, lease, from, until) => {
        const { start_date: start, end_date: end } = leaseOf(lease);
        return start === undefined || end === undefined
          ? new Failure('the lease has no start or no end')
          : (until as Bound).end <= (from as Bound).start
            ? new Failure('overlaps() got an end that is not after the start')
            : start.nanos < (until as Bound).end && end.nanos > (from as Bound).start;
      },
    },
  ],
];

/** The first nanosecond of a time or a day, and the first one after it. */
interface Bound {
  readonly start: bigint;
  readonly end: bigint;
}

function boundOf(written: unknown): Bound {
  const instant = toInstant(written);
  if (typeof written !== 'string' || instant === undefined) {
    throw new Error('expected a date such as 2026-12-20, or a time such as 2026-12-20T08:00:00+01:00');
  }
  const { nanos: start } = Timestamp.fromMicroseconds(instant);
  return { start, end: DATE.test(written) ? start + 24n * 3_600_000_000_000n : start };
}

function leaseOf(value: unknown): LeaseView {
  if (value instanceof LeaseView) {
    return value;
  }
  throw new Error('expected a lease');
}

function reservationOf(value: unknown): ReservationView {
  if (value instanceof ReservationView) {
    return value;
  }
  throw new Error('expected a reservation');
}

/** Signatures and implementations. */
const LEDGER_FUNCTIONS: readonly (readonly [string, DocumentedFunction])[] = [
  reading(
    'leases',
    'int',
    'The pending and active leases of the project, without this one.',
    ({ leases }) => leases,
  ),
  reading(
    'taken',
    'double',
    'What other leases have taken of the budget of the project that is valid at the start of the lease, such as node-hours.',
    ({ taken }) => taken,
  ),
  reading(
    'left',
    'double',
    'What other leases leave of that budget. Fails without such a budget.',
    ({ left }) => left ?? new Failure('the project has no budget at the start of the lease'),
  ),
].flat();

function reading(
  name: string,
  type: string,
  description: string,
  read: (ledger: LedgerView) => unknown,
): readonly (readonly [string, DocumentedFunction])[] {
  const run = ({ activation }: Frame) => {
    const { ledger } = activation as { readonly ledger?: LedgerView | undefined };
    return ledger === undefined ? new Failure(`${name}() needs a ledger`) : read(ledger);
  };
  return [
    [`${name}(): ${type}`, { description, readsLedger: true, run }],
    [
      `${name}(Project): ${type}`,
      {
        description: `The same; the project is always \`context.project\`.`,
        readsLedger: true,
        run: (frame, project) =>
          project instanceof ProjectView ? run(frame) : new Failure(`${name}() needs a project`),
      },
    ],
  ];
}

const REQUEST = objectType('Request', 'The request.', RequestInfo, {
  operation: { type: 'string', description: '`create` or `update`.' },
});

const ofKeystone = (type: 'string' | 'list<string>', what: string) => ({
  type,
  description: `${what} Missing unless \`[keystone] resolve_names\` is true.`,
  isName: true,
});

const PROJECT = objectType('Project', 'A project of Keystone.', ProjectView, {
  id: { type: 'string', description: 'Its id.' },
  name: ofKeystone('string', 'Its name.'),
  domain: ofKeystone('string', 'The name of its domain.'),
  tags: ofKeystone('list<string>', 'Its tags.'),
});

const USER = objectType('User', 'A user of Keystone.', UserView, {
  id: { type: 'string', description: 'Their id.' },
  name: ofKeystone('string', 'Their name.'),
  domain: ofKeystone('string', 'The name of their domain.'),
});

const CONTEXT = objectType('Context', 'Who asks.', ContextView, {
  project: { type: 'Project', description: 'The project of the lease.' },
  user: { type: 'User', description: 'The user who asks.' },
  project_id: { type: 'string', description: 'The id of the project.' },
  user_id: { type: 'string', description: 'The id of the user.' },
  region: { type: 'string', description: 'The region of Blazar. Missing if Blazar sends none.' },
});

const RESERVATION = objectType('Reservation', 'Resources of one kind.', ReservationView, {
  id: { type: 'string', description: 'Its id. Missing in a new lease.' },
  resource_type: { type: 'string', description: 'The kind of resource, such as `physical:host`.' },
  size: {
    type: 'int',
    description: 'The most that it may get: `max` for hosts, `amount` for everything else.',
  },
  properties: {
    type: 'map<string, string>',
    description: 'The properties of machines that it requires with `==`.',
  },
  allocations: {
    type: 'list<map<string, dyn>>',
    description: 'The hosts, addresses, … that were found for it.',
    total: MAX_ALLOCATIONS,
  },
  attributes: { type: 'map<string, dyn>', description: 'All of its attributes in the request.' },
});

const LEASE = objectType('Lease', 'A lease.', LeaseView, {
  id: { type: 'string', description: 'Its id. Missing in a new lease.' },
  name: { type: 'string', description: 'Its name.' },
  status: { type: 'string', description: 'As Blazar writes it: `PENDING`, `ACTIVE`.' },
  start_date: { type: 'timestamp', description: 'Its start.' },
  end_date: { type: 'timestamp', description: 'Its end.' },
  reservations: {
    type: 'list<Reservation>',
    description: 'Its reservations. At an update also those that stay as they are.',
    items: MAX_RESERVATIONS,
    isDistinct: true,
  },
  attributes: { type: 'map<string, dyn>', description: 'All of its attributes in the request.' },
});

/** The variables of a new lease; with `update`, also `current`. */
export function leaseEnvironment(operation: 'create' | 'update'): RuleEnvironment {
  const environment = new RuleEnvironment()
    .object(REQUEST, PROJECT, USER, CONTEXT, RESERVATION, LEASE)
    .variable('now', 'timestamp', 'The current time.')
    .variable('request', 'Request', 'The request.')
    .variable('context', 'Context', 'Who asks.')
    .variable('lease', 'Lease', 'The lease as it would be.')
    .variable('reservations', 'list<Reservation>', 'The same as `lease.reservations`.', {
      items: MAX_RESERVATIONS,
      isDistinct: true,
    })
    .variable('allocations', 'list<map<string, dyn>>', 'The allocations of all reservations.', {
      items: MAX_ALLOCATIONS,
    });
  if (operation === 'update') {
    environment.variable('current', 'Lease', 'The lease as it is.');
  }
  for (const [signatures, implementation] of [...LEASE_FUNCTIONS, ...LEDGER_FUNCTIONS]) {
    environment.function(signatures, implementation);
  }
  return environment;
}
