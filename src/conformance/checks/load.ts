/** Robustness and load: invalid requests, large leases, concurrent requests, and several per connection. */
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Check,
  expectAsBefore,
  expectNoServerError,
  expectVerdict,
  type Finding,
  type Run,
  SOURCE,
  VARIANT_OF_CREATE,
} from '../check.ts';
import { hosts } from '../leases.ts';

const PROTOCOL =
  'Blazar sends JSON objects with a lease. The service answers anything else with a status below 500, because the mistake is not its own, and never allows a request that it cannot read. It keeps running.';

/** An invalid request must neither stop the service nor be allowed. `bodies`: description → body. */
const invalid = (id: string, what: string, bodies: Readonly<Record<string, string>>): Check => ({
  id,
  title: `${what} is not allowed, causes no server error, and does not stop the service`,
  protocol: PROTOCOL,
  sources: [SOURCE.clientErrors, SOURCE.keepInMind],
  run: (run) => goesOn(run, bodies),
});

export const robustnessChecks: readonly Check[] = [
  invalid('invalid-json', 'invalid JSON', {
    'a body that is not JSON': '{"context": {',
    'a body that is text': 'lease=run-7',
  }),
  invalid('empty-body', 'an empty body', { 'an empty body': '' }),
  invalid('not-an-object', 'JSON without a lease', {
    'the JSON null': 'null',
    'a list': '[]',
    'a text in JSON': '"lease"',
    'an empty object': '{}',
  }),
];

async function goesOn(run: Run, bodies: Readonly<Record<string, string>>): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const operation of run.target.operations) {
    for (const [what, body] of Object.entries(bodies)) {
      findings.push(...expectNoServerError(await run.target.send({ operation, what, body })));
    }
  }
  return [...findings, ...(await expectAsBefore(run))];
}

const CONCURRENT = 32;

/** Time to notice that the service closed a connection after its response, which is allowed. */
const PAUSE_MS = 10;

export const loadChecks: readonly Check[] = [
  {
    id: 'large-lease',
    title: 'a lease of 10,000 hosts is answered within the timeout',
    protocol:
      'A lease has one allocation per host, each with all that Blazar knows about the host: ten thousand are about 5 MB. Blazar waits for the answer without a limit, and so does its user.',
    sources: [SOURCE.unsaid, SOURCE.duties],
    ...VARIANT_OF_CREATE,
    run: async ({ target, leases, largeLeaseHosts }) => {
      const lease = leases.make({ reservations: [hosts(largeLeaseHosts)] });
      return expectVerdict(await target.ask('create', lease, `a lease of ${largeLeaseHosts} hosts`));
    },
  },
  {
    id: 'concurrent',
    title: `${CONCURRENT} requests at once are all answered within the timeout`,
    protocol: 'Leases are created by many users at the same time, and Blazar does not ask again.',
    sources: [SOURCE.unsaid, SOURCE.duties],
    ...VARIANT_OF_CREATE,
    run: async ({ target, leases }) => {
      const questions = Array.from({ length: CONCURRENT }, (_, index) =>
        target.ask('create', leases.make(), `a lease, number ${index + 1} of ${CONCURRENT} at once`),
      );
      return (await Promise.all(questions)).flatMap(expectVerdict);
    },
  },
  {
    id: 'connection-kept',
    title: 'several requests on one connection are answered, even after one that is not JSON',
    protocol:
      'HTTP/1.1 keeps a connection open unless one side sends Connection: close, and ExternalServiceFilter of this package does so. The unread rest of a body must not become the next request.',
    sources: [SOURCE.persistence],
    ...VARIANT_OF_CREATE,
    run: keptConnection,
  },
];

async function keptConnection({ target, leases }: Run): Promise<Finding[]> {
  const connection = target.connect('create');
  const ask = (what: string) => target.ask('create', leases.make(), what, { connection });
  try {
    const first = await ask('a lease, on a connection that is kept open');
    await pause(PAUSE_MS);
    const second = await ask('a second one on this connection');
    await pause(PAUSE_MS);
    const what = 'a body that is not JSON, on this connection';
    await target.send({ operation: 'create', what, body: '{"context": {', connection });
    await pause(PAUSE_MS);
    const last = await ask('a lease, after the body that was not JSON');
    return [first, second, last].flatMap(expectVerdict);
  } finally {
    await connection.close();
  }
}
