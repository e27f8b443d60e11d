/** What rules for leases may name: variables, their attributes, and functions. */
import { MAX_ALLOCATIONS, MAX_RESERVATIONS } from '../../lease/lease.ts';
import { objectType, RuleEnvironment } from '../cel/environment.ts';
import { LEASE_FUNCTIONS, LEDGER_FUNCTIONS } from './functions.ts';
import { LeaseView, ReservationView } from './lease-view.ts';
import { ContextView, ProjectView, RequestInfo, UserView } from './request-view.ts';

const REQUEST = objectType('Request', 'What is asked.', RequestInfo, {
  operation: {
    type: 'string',
    description: '`create` or `update`.',
    read: ({ operation }) => operation,
  },
});

const PROJECT = objectType('Project', 'A project of Keystone.', ProjectView, {
  id: { type: 'string', description: 'Its id.', read: ({ id }) => id },
  name: {
    type: 'string',
    description: 'Its name. Missing unless `[keystone] resolve_names` is true.',
    isName: true,
    read: ({ name }) => name,
  },
  domain: {
    type: 'string',
    description: 'The name of its domain. Missing unless `[keystone] resolve_names` is true.',
    isName: true,
    read: ({ domain }) => domain,
  },
  tags: {
    type: 'list<string>',
    description: 'Its tags. Missing unless `[keystone] resolve_names` is true.',
    isName: true,
    read: ({ tags }) => tags,
  },
});

const USER = objectType('User', 'A user of Keystone.', UserView, {
  id: { type: 'string', description: 'Their id.', read: ({ id }) => id },
  name: {
    type: 'string',
    description: 'Their name. Missing unless `[keystone] resolve_names` is true.',
    isName: true,
    read: ({ name }) => name,
  },
  domain: {
    type: 'string',
    description: 'The name of their domain. Missing unless `[keystone] resolve_names` is true.',
    isName: true,
    read: ({ domain }) => domain,
  },
});

const CONTEXT = objectType('Context', 'Who asks.', ContextView, {
  project: { type: 'Project', description: 'The project of the lease.', read: ({ project }) => project },
  user: { type: 'User', description: 'The user who asks.', read: ({ user }) => user },
  project_id: { type: 'string', description: 'The id of the project.', read: ({ project_id }) => project_id },
  user_id: { type: 'string', description: 'The id of the user.', read: ({ user_id }) => user_id },
  region: {
    type: 'string',
    description: 'The region of Blazar. Missing if it does not say.',
    read: ({ region }) => region,
  },
});

const RESERVATION = objectType('Reservation', 'Resources of one kind.', ReservationView, {
  id: { type: 'string', description: 'Its id. Missing in a new lease.', read: ({ id }) => id },
  resource_type: {
    type: 'string',
    description: 'The kind of resource, such as `physical:host`.',
    read: ({ resource_type }) => resource_type,
  },
  size: {
    type: 'int',
    description: 'The most that it may be given: `max` of hosts, `amount` of everything else.',
    read: ({ size }) => size,
  },
  properties: {
    type: 'map<string, string>',
    description: 'The properties of machines that it requires with `==`.',
    read: ({ properties }) => properties,
  },
  allocations: {
    type: 'list<map<string, dyn>>',
    description: 'The hosts, addresses, … that were found for it.',
    read: ({ allocations }) => allocations,
    total: MAX_ALLOCATIONS,
  },
  attributes: {
    type: 'map<string, dyn>',
    description: 'Everything that the request says of it.',
    read: ({ attributes }) => attributes,
  },
});

const LEASE = objectType('Lease', 'A lease.', LeaseView, {
  id: { type: 'string', description: 'Its id. Missing in a new lease.', read: ({ id }) => id },
  name: { type: 'string', description: 'Its name.', read: ({ name }) => name },
  status: {
    type: 'string',
    description: 'As Blazar writes it: `PENDING`, `ACTIVE`.',
    read: ({ status }) => status,
  },
  start_date: { type: 'timestamp', description: 'Its start.', read: ({ start_date }) => start_date },
  end_date: { type: 'timestamp', description: 'Its end.', read: ({ end_date }) => end_date },
  reservations: {
    type: 'list<Reservation>',
    description: 'Its reservations. At an update also those that stay as they are.',
    read: ({ reservations }) => reservations,
    items: MAX_RESERVATIONS,
    isDistinct: true,
  },
  attributes: {
    type: 'map<string, dyn>',
    description: 'Everything that the request says of it.',
    read: ({ attributes }) => attributes,
  },
});

/** The variables of a new lease; with `update`, also `current`. */
export function leaseEnvironment(operation: 'create' | 'update'): RuleEnvironment {
  const environment = new RuleEnvironment();
  for (const type of [REQUEST, PROJECT, USER, CONTEXT, RESERVATION, LEASE]) {
    environment.object(type);
  }
  environment
    .variable('now', 'timestamp', 'The current time.')
    .variable('request', 'Request', 'What is asked.')
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
