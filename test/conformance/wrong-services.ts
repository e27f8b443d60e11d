/** One wrong service for each check: the mistake that the check is there to find. */
import type { Operation } from '../../src/conformance/target.ts';
import { type Answer, type Asked, asks, type Fault, type Real, rightAnswer, TOKEN } from './services.ts';

export interface WrongService {
  /** What it does wrong, in the words of its author's bug report. */
  readonly mistake: string;
  /** Made anew for each run, since some remember. */
  readonly fault: () => Fault;
  /** Checks that it fails too, since they send the same; `many` = most of them do. */
  readonly alsoFails?: readonly string[] | 'many';
}

const OK: Answer = { status: 200, body: '{"allowed":true}' };
const CRASHED: Answer = { status: 500, body: 'Internal Server Error' };
const UNREADABLE: Answer = { status: 400, body: '{"message":"unreadable"}' };

/** Answers like this where the condition holds, and is right otherwise. */
const when = (holds: (asked: Asked) => unknown, answer: Answer) => (): Fault => (asked) =>
  holds(asked) ? answer : undefined;

/** Where a lease whose id it has seen is asked about so. */
const whenAgain = (operation: Operation, answer: Answer) => (): Fault => {
  const ids = new Set<unknown>();
  return (asked) => {
    const again = asks(asked, operation) && ids.has(asked.json.lease.id);
    ids.add(asked.json?.lease?.id);
    return again ? answer : undefined;
  };
};

const reservationsOf = ({ json }: Real) => json.lease.reservations;
const onlyType = (asked: Real, type: string) =>
  reservationsOf(asked).length === 1 && reservationsOf(asked)[0]?.resource_type === type;

const created = (type: string) => (asked: Asked) => asks(asked, 'create') && onlyType(asked, type);
const ended = (type: string) => (asked: Asked) => asks(asked, 'end') && onlyType(asked, type);
/** With the name, and with all that there is to say of the reservation. */
const updated = (type: string) => (asked: Asked) =>
  asks(asked, 'update') &&
  onlyType(asked, type) &&
  asked.json.lease.name &&
  'lease_id' in (reservationsOf(asked)[0] ?? {});

const created200 = (type: string): WrongService => ({
  mistake: `allows a ${type} with 200`,
  fault: when(created(type), OK),
});
const updatedNot = (type: string): WrongService => ({
  mistake: `knows no ${type} in an update`,
  fault: when(updated(type), CRASHED),
});
const endedNot = (type: string): WrongService => ({
  mistake: `refuses the end of a ${type}`,
  fault: when(ended(type), { status: 403, body: '{"message":"no"}' }),
});

/** Reads no dates that are written like this. */
const cannotRead = (dates: RegExp) =>
  when((asked) => asks(asked, 'create') && dates.test(String(asked.json.lease.start_date)), UNREADABLE);

export const WRONG_SERVICES: Readonly<Record<string, WrongService>> = {
  'allow-lease': {
    mistake: 'allows less than its author thinks',
    fault: when((asked) => asks(asked, 'create') && asked.json.context.project_id === 'climate', {
      status: 403,
      body: '{"message":"no"}',
    }),
  },
  'deny-lease': {
    mistake: 'allows more than its author thinks',
    fault: when((asked) => asks(asked, 'create'), { status: 204 }),
  },
  'deny-update': {
    mistake: 'allows every update',
    fault: when((asked) => asks(asked, 'update'), { status: 204 }),
    alsoFails: ['limit'],
  },
  'deny-commit': {
    mistake: 'records whatever is committed',
    fault: when((asked) => asks(asked, 'commitCreate'), { status: 204 }),
  },
  'create-physical-host': { ...created200('physical:host'), alsoFails: 'many' },
  'create-virtual-instance': created200('virtual:instance'),
  'create-flavor-instance': created200('flavor:instance'),
  'create-virtual-floatingip': created200('virtual:floatingip'),
  'create-network': created200('network'),
  'create-two-reservations': {
    mistake: 'expects one reservation',
    fault: when((asked) => asks(asked, 'create') && reservationsOf(asked).length === 2, CRASHED),
  },
  'update-physical-host': updatedNot('physical:host'),
  'update-virtual-instance': updatedNot('virtual:instance'),
  'update-flavor-instance': updatedNot('flavor:instance'),
  'update-virtual-floatingip': updatedNot('virtual:floatingip'),
  'update-network': updatedNot('network'),
  'end-physical-host': endedNot('physical:host'),
  'end-virtual-instance': endedNot('virtual:instance'),
  'end-flavor-instance': endedNot('flavor:instance'),
  'end-virtual-floatingip': endedNot('virtual:floatingip'),
  'end-network': endedNot('network'),
  'update-partial-lease': {
    mistake: 'reads the name of the lease, which an update need not have',
    fault: when((asked) => asks(asked, 'update') && asked.json.lease.name === undefined, CRASHED),
  },
  'update-partial-reservation': {
    mistake: 'reads of a reservation what an update need not have',
    fault: when(
      (asked) =>
        asks(asked, 'update') &&
        reservationsOf(asked).some(
          (one) => !('resource_properties' in one || 'affinity' in one || 'network_id' in one),
        ),
      CRASHED,
    ),
  },
  'region-null': {
    mistake: 'takes region_name for a text',
    fault: when((asked) => asked.json?.context?.region_name === null, CRASHED),
  },
  'date-without-offset': { mistake: 'asks for an offset', fault: cannotRead(/:\d\d$/), alsoFails: 'many' },
  'date-with-fraction': { mistake: 'reads whole seconds only', fault: cannotRead(/\.\d+$/) },
  'date-with-offset': {
    mistake: 'reads dates without an offset only',
    fault: cannotRead(/[+-]\d\d:\d\d$/),
    alsoFails: ['documented-example'],
  },
  'date-with-space': { mistake: 'reads dates with a T only', fault: cannotRead(/ /) },
  'documented-example': {
    mistake: 'asks for end_date',
    fault: when((asked) => asks(asked, 'create') && asked.json.lease.end_date === undefined, UNREADABLE),
  },
  'unknown-fields': {
    mistake: 'refuses attributes that it does not know',
    fault: when((asked) => asks(asked, 'create') && 'x_unknown_text' in asked.json, UNREADABLE),
  },
  'end-unknown-lease': {
    mistake: 'looks leases up that it has never seen',
    fault: () => {
      const names = new Set<unknown>();
      return (asked) => {
        if (asks(asked, 'create')) {
          names.add(asked.json.lease.name);
        }
        return asks(asked, 'end') && !names.has(asked.json.lease.name) ? { status: 404 } : undefined;
      };
    },
  },
  'end-twice': {
    mistake: 'ends a lease once',
    fault: whenAgain('end', { status: 409, body: 'ended already' }),
  },
  'commit-create': {
    mistake: 'says 201 to a commit',
    fault: when((asked) => asks(asked, 'commitCreate') && rightAnswer(asked).status === 204, { status: 201 }),
  },
  'commit-update': {
    mistake: 'has forgotten the commit of updates',
    fault: when((asked) => asks(asked, 'commitUpdate') && rightAnswer(asked).status === 204, { status: 404 }),
  },
  'commit-twice': {
    mistake: 'takes a commit that is sent again for a second lease with the same id',
    fault: whenAgain('commitCreate', { status: 403, body: '{"message":"There is such a lease."}' }),
    alsoFails: ['limit'],
  },
  'idempotency-key': {
    mistake: 'refuses headers that it does not know',
    fault: when((asked) => asked.request.headers['idempotency-key'] !== undefined && asks(asked, 'create'), {
      status: 400,
    }),
    alsoFails: ['limit'],
  },
  limit: {
    mistake: 'forgets updates',
    fault: () => (asked) => (asks(asked, 'update') ? rightAnswer(asked) : undefined),
  },
  'token-missing': {
    mistake: 'compares a token only where there is one',
    fault: () => (asked) => (asked.token ? undefined : rightAnswer({ ...asked, token: TOKEN })),
  },
  'token-wrong': {
    mistake: 'takes every beginning of the token',
    fault: () => (asked) =>
      asked.token && TOKEN.startsWith(asked.token) ? rightAnswer({ ...asked, token: TOKEN }) : undefined,
  },
  'token-right': {
    mistake: 'answers every question as if the token were wrong',
    fault: when(({ operation, json }) => operation !== 'end' && json !== undefined, {
      status: 403,
      body: '{"message":"wrong token"}',
    }),
    alsoFails: ['allow-lease'],
  },
  'invalid-json': {
    mistake: 'lets the parser throw',
    fault: when(({ text, json }) => json === undefined && !/^(|null|\[\]|".*"|\{\})$/.test(text), CRASHED),
  },
  'empty-body': {
    mistake: 'takes nothing for a lease without reservations',
    fault: when(({ text }) => text === '', { status: 204 }),
  },
  'not-an-object': {
    mistake: 'allows what it cannot judge',
    fault: when(({ text }) => text === '{}', { status: 204 }),
  },
  'large-lease': {
    mistake: 'reads 100 kB',
    fault: when(({ text }) => text.length > 100_000, { status: 413 }),
  },
  concurrent: {
    mistake: 'does eight things at once',
    fault: () => {
      let underWay = 0;
      return async ({ operation }) => {
        underWay += 1;
        const tooMany = underWay > 8 && operation === 'create';
        await new Promise((resolve) => setTimeout(resolve, operation === 'create' ? 10 : 0));
        underWay -= 1;
        return tooMany ? { status: 503 } : undefined;
      };
    },
  },
  'connection-kept': {
    mistake: 'drops a connection that it has not said to close',
    fault: () => {
      const known = new WeakSet();
      return ({ request }) => {
        const used = known.has(request.socket);
        known.add(request.socket);
        return used ? 'hangUp' : undefined;
      };
    },
  },
  'message-is-text': {
    mistake: 'rejects with a list',
    fault: () => (asked) =>
      rightAnswer(asked).status === 403 ? { status: 403, body: '["too long"]' } : undefined,
  },
  'no-redirect': {
    mistake: 'sends to a login page whoever has no right token',
    fault: when(({ token }) => token !== TOKEN, { status: 302, headers: { Location: '/login' } }),
  },
  'no-content': {
    mistake: 'gives a 204 the length of a body',
    fault: () => (asked) =>
      rightAnswer(asked).status === 204 ? { status: 204, headers: { 'Content-Length': '2' } } : undefined,
  },
  'no-stack-trace': {
    mistake: 'shows where its parser threw',
    fault: when(({ json }) => json === undefined, {
      status: 400,
      body: 'SyntaxError: Unexpected end of JSON input\n    at JSON.parse (<anonymous>)\n    at read (/srv/policy/app.js:12:5)',
    }),
  },
  'no-token': {
    mistake: 'says which token it expects',
    fault: when(({ token }) => token !== TOKEN, { status: 401, body: `{"message":"expected ${TOKEN}"}` }),
  },
};
