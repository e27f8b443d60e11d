/**
 * The life of a lease: created, updated, committed and ended, for each resource type; and repeated requests.
 */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  type Check,
  createdLease,
  dayLonger,
  expectAnswerTo,
  expectNoContent,
  expectRefusal,
  expectSameVerdict,
  expectStatus,
  expectVerdict,
  type Finding,
  type Form,
  type Run,
  SOURCE,
  VARIANT_OF_CREATE,
  type Verdict,
} from '../check.ts';
import { type Fields, PROJECT_ID, type ResourceType, resources, USER_ID } from '../leases.ts';
import type { Exchange, Operation } from '../target.ts';

const TYPES = Object.keys(resources) as ResourceType[];

const OF_TYPE = {
  create: [
    'a new',
    'check-create is answered with 204 when the lease is allowed, and with 403 when it is not.',
  ],
  update: [
    'the update of a',
    'check-update is answered with 204 when the change in lease is allowed, and with 403 when it is not.',
  ],
  end: [
    'the end of a',
    'on-end reports that a lease has ended, and is answered with 204: there is nothing to decide.',
  ],
} as const;

const ofEachType = (operation: keyof typeof OF_TYPE): Check[] =>
  TYPES.map((type) => {
    const [which, protocol] = OF_TYPE[operation];
    const isEnd = operation === 'end';
    return {
      id: `${operation}-${type.replace(':', '-')}`,
      title: `${which} lease with a reservation of the type ${type} is answered with 204${isEnd ? '' : ' or 403'}`,
      protocol,
      sources: isEnd ? [SOURCE.endpoints, SOURCE.duties] : [SOURCE.blazarDocs, SOURCE.requests],
      needs: [operation],
      run: async (run) => {
        const { target, leases } = run;
        const isNew = operation === 'create';
        const reservation = resources[type];
        const lease = isNew
          ? leases.make({ reservations: [reservation] })
          : await createdLease(run, reservation);
        const { name, reservations } = lease.current;
        const options =
          operation === 'update' ? { changes: { name, ...dayLonger(leases), reservations } } : {};
        return expectAnswerTo(
          await target.ask(operation, lease, `${isNew ? 'a' : which} lease of the type ${type}`, options),
        );
      },
    };
  });

const inReverse: Form = {
  as: 'in the other order',
  write: (parts) =>
    parts.reservations.length < 2
      ? undefined
      : { ...parts, reservations: parts.reservations.toReversed(), what: 'its reservations in reverse' },
};

export const resourceTypeChecks: readonly Check[] = [
  ...ofEachType('create'),
  {
    id: 'create-two-reservations',
    title: 'a new lease with two reservations is answered with 204 or 403, whatever their order is',
    protocol: 'A lease has any number of reservations, each with its own allocations.',
    sources: [SOURCE.requests, SOURCE.unsaid],
    ...VARIANT_OF_CREATE,
    run: async (run) => {
      const reservations = [resources['physical:host'], resources['virtual:floatingip']];
      const lease = run.leases.make({ reservations });
      return [
        ...expectVerdict(await run.target.ask('create', lease, 'a lease of a host and a floating IP')),
        ...(await expectSameVerdict(run, inReverse)),
      ];
    },
  },
  ...ofEachType('update'),
  ...ofEachType('end'),
];

const NO_PROMISE = 'on-end is not guaranteed to arrive: it may come late, twice or never.';

export const endChecks: readonly Check[] = [
  {
    id: 'end-unknown-lease',
    title: 'the end of a lease that the service has never seen is answered with 204',
    protocol: `${NO_PROMISE} A lease may be older than the service.`,
    sources: [SOURCE.endpoints, SOURCE.blazarDocs],
    needs: ['end'],
    variant: 'end-physical-host',
    run: async ({ target, leases }) =>
      expectNoContent(await target.ask('end', leases.make(), 'the end of a lease that was never created')),
  },
  {
    id: 'end-twice',
    title: 'the end of a lease that is reported twice is answered with 204 both times',
    protocol: NO_PROMISE,
    sources: [SOURCE.endpoints, SOURCE.blazarDocs],
    needs: ['end'],
    variant: 'end-physical-host',
    run: async (run) => {
      const lease = await createdLease(run);
      const first = await run.target.ask('end', lease, 'the end of a lease');
      const second = await run.target.ask('end', lease, 'the same end again');
      return [first, second].flatMap(expectNoContent);
    },
  },
];

const COMMIT_SOURCES = [SOURCE.endpoints, SOURCE.keepInMind];

/**
 * The two endpoints that forks of Blazar, and this package's ExternalServiceFilter, call for built leases.
 */
export const commitChecks: readonly Check[] = [
  {
    id: 'commit-create',
    title: 'the commit of a new lease is answered with 204 or 403',
    protocol: 'commit-create has the body of a check-create with the id of the lease, and the same answers.',
    sources: COMMIT_SOURCES,
    needs: ['commitCreate'],
    run: async (run) =>
      expectVerdict(
        await run.target.ask('commitCreate', await createdLease(run), 'the commit of a new lease'),
      ),
  },
  {
    id: 'commit-update',
    title: 'the commit of an update is answered with 204 or 403',
    protocol: 'commit-update has the body of a check-update, and the same answers.',
    sources: COMMIT_SOURCES,
    needs: ['commitUpdate'],
    run: async (run) => {
      const { target, leases } = run;
      const lease = await createdLease(run);
      const changes = { ...dayLonger(leases), reservations: lease.current.reservations };
      if (target.has('update')) {
        await target.ask('update', lease, 'an update', { changes });
      }
      return expectVerdict(await target.ask('commitUpdate', lease, 'the commit of an update', { changes }));
    },
  },
  {
    id: 'commit-twice',
    title: 'a commit that is sent again gets the same answer',
    protocol:
      'A commit whose answer was lost is sent again with the same Idempotency-Key and id: it is one lease, and is charged once.',
    sources: COMMIT_SOURCES,
    needs: ['commitCreate'],
    variant: 'commit-create',
    run: async (run) => {
      const lease = await createdLease(run);
      const key = lease.id;
      const first = await run.target.ask('commitCreate', lease, 'the commit of a new lease', { key });
      const second = await run.target.ask('commitCreate', lease, 'the same commit again', { key });
      const { answer } = first;
      return answer === undefined || answer.status === second.answer?.status
        ? [first, second].flatMap(expectVerdict)
        : [{ expected: `the status ${answer.status}, as the first time`, exchange: second }];
    },
  },
];

export const repetitionChecks: readonly Check[] = [
  {
    id: 'idempotency-key',
    title: 'an Idempotency-Key does not change the answer to a new lease, nor does sending it again',
    protocol:
      'ExternalServiceFilter of this package sends an Idempotency-Key. The same key means that a request is sent again: it is one lease, with one answer.',
    sources: [SOURCE.endpoints, SOURCE.keepInMind],
    ...VARIANT_OF_CREATE,
    run: sentAgain,
  },
];

async function sentAgain(run: Run): Promise<Finding[]> {
  const { target, leases } = run;
  const findings = await expectSameVerdict(run, {
    as: 'without an Idempotency-Key',
    hasKey: true,
    write: (parts) => ({ ...parts, what: 'with an Idempotency-Key' }),
  });
  if (findings.length > 0) {
    return findings;
  }
  const lease = leases.make();
  const key = randomUUID();
  const first = await target.ask('create', lease, 'a lease with an Idempotency-Key', { key });
  const again = await target.ask('create', lease, 'the same lease with the same Idempotency-Key', { key });
  const status = first.answer?.status;
  return again.answer?.status === status
    ? expectVerdict(again)
    : [{ expected: `the status ${status}, as the first time`, exchange: again }];
}

export const authorChecks: readonly Check[] = [
  {
    id: 'allow-lease',
    title: 'the lease of --allow-lease is answered with 204',
    protocol: 'check-create is answered with 204 when the lease meets the criteria.',
    sources: [SOURCE.blazarDocs, SOURCE.endpoints],
    needs: ['create'],
    run: (run) => asked(run, 'create', '--allow-lease', run.allowLease, expectNoContent),
  },
  {
    id: 'deny-lease',
    title: 'the lease of --deny-lease is answered with 403',
    protocol: 'check-create is answered with 403 when the lease does not meet the criteria.',
    sources: [SOURCE.blazarDocs, SOURCE.endpoints],
    needs: ['create'],
    run: (run) => asked(run, 'create', '--deny-lease', run.denyLease),
  },
  {
    id: 'deny-update',
    title: 'the update of --deny-update is answered with 403, also in part, and not allowed to another owner',
    protocol:
      'check-update is answered with 403 when the change in lease is not allowed. An update must not get what a create would not. Blazar lets users write another owner into it.',
    sources: [SOURCE.blazarDocs, SOURCE.endpoints, SOURCE.keepInMind],
    needs: ['update'],
    run: async (run) => {
      const { denyUpdate: update } = run;
      const whole = await asked(run, 'update', '--deny-update', update);
      if (update === undefined || 'skipped' in whole || whole.length > 0) {
        return whole;
      }
      const what = 'the update of --deny-update';
      const partial = namingOne(update);
      const part = `${what}, naming one of its reservations`;
      const named = partial === undefined ? [] : expectRejection(await sent(run, 'update', partial, part));
      const { lease, ...others } = JSON.parse(update) as { readonly lease: Fields };
      const given = { ...others, lease: { ...lease, user_id: USER_ID, project_id: PROJECT_ID } };
      const owned = await sent(run, 'update', JSON.stringify(given), `${what}, with another owner`, false);
      return [...named, ...expectRefusal(owned)];
    },
  },
  {
    id: 'deny-commit',
    title: 'the lease of --deny-commit is answered with 403 by commit-create',
    protocol:
      'A commit is the last check before a lease is granted: a lease that has exceeded a limit since its check is answered with 403.',
    sources: [SOURCE.endpoints, SOURCE.keepInMind],
    needs: ['commitCreate'],
    run: (run) => asked(run, 'commitCreate', '--deny-commit', run.denyCommit),
  },
];

/**
 * An update of dates that names one reservation, and nothing of it but its type: Blazar keeps the rest.
 * `undefined` if it changes reservations, too.
 */
function namingOne(update: string): string | undefined {
  const { context, current_lease, lease } = JSON.parse(update) as Readonly<Record<string, Fields>>;
  if (!isDeepStrictEqual(current_lease?.reservations, lease?.reservations)) {
    return undefined;
  }
  const reservations = ((lease?.reservations ?? []) as Fields[]).map((one) => ({ id: randomUUID(), ...one }));
  const named = reservations.slice(0, 1).map(({ id, resource_type, allocations }: Fields) => ({
    id,
    resource_type,
    allocations,
  }));
  const partial = { ...lease, reservations: named };
  return named.length === 0
    ? undefined
    : JSON.stringify({ context, current_lease: { ...current_lease, reservations }, lease: partial });
}

async function asked(
  run: Run,
  operation: Operation,
  flag: string,
  body: string | undefined,
  expect: (exchange: Exchange) => Finding[] = expectRejection,
): Promise<Verdict> {
  const what = `the ${operation === 'update' ? 'update' : 'lease'} of ${flag}`;
  return body === undefined
    ? { skipped: `${flag} is not given` }
    : expect(await sent(run, operation, body, what));
}

const expectRejection = (exchange: Exchange) => expectStatus(exchange, [403], 'the status 403');

/** Sends a request of the author. `valid`: as Blazar sends it. */
async function sent(
  { target }: Run,
  operation: Operation,
  body: string,
  what: string,
  valid = true,
): Promise<Exchange> {
  const exchange = await target.send({ operation, what, body }, valid);
  const { context, current_lease, lease } = JSON.parse(body) as Readonly<Record<string, object | undefined>>;
  const id = randomUUID();
  target.noteAllowed(exchange, id, { context, lease: { id, ...current_lease, ...lease } });
  return exchange;
}
