/** Authentication: the token is checked. */
import {
  ASKED,
  type Check,
  expectAnswerTo,
  expectRefusal,
  type Finding,
  type Run,
  SOURCE,
} from '../check.ts';
import type { TestLease } from '../leases.ts';
import type { Credentials, Exchange, Operation, Target } from '../target.ts';

export const NO_TOKEN = { skipped: 'neither --token nor --bearer is given' };
const REFUSED =
  'The service compares the token with the one that was agreed with the operator. It refuses any other with a status of its choice (401 is usual), but never with a success.';

export const tokenChecks: readonly Check[] = [
  {
    id: 'token-missing',
    title: 'a request without a token, or with an empty one, is refused',
    protocol: REFUSED,
    sources: [SOURCE.blazarDocs, SOURCE.duties],
    run: (run) => refused(run, ['none', 'empty']),
  },
  {
    id: 'token-wrong',
    title: 'a request with a wrong token is refused',
    protocol: REFUSED,
    sources: [SOURCE.blazarDocs, SOURCE.duties],
    run: (run) => refused(run, ['another', 'longer', 'shorter', 'first', 'changed', 'end', 'case']),
  },
  {
    id: 'token-right',
    title: 'a request with the right token is not refused',
    protocol: 'A valid request with the right token gets the verdict, not the answer to a wrong token.',
    sources: [SOURCE.blazarDocs, SOURCE.duties],
    run: accepted,
  },
];

/** In words, and what each token of the run is replaced by. */
const WRONG = {
  none: ['without a token', () => undefined],
  empty: ['with an empty token', () => ''],
  another: ['with another token', () => 'not-the-token-of-this-run'],
  // Accepted by a service that compares only the start.
  longer: ['with the right token and one more letter', (right: string) => `${right}x`],
  shorter: ['with the right token without its last letter', (right: string) => right.slice(0, -1)],
  first: ['with the first letter of the right token', (right: string) => right.slice(0, 1)],
  // Accepted by a service that compares only the length, or all but the end, or all but the beginning.
  changed: [
    'with the right token, its last letter changed',
    (right: string) => `${right.slice(0, -1)}${right.endsWith('x') ? 'y' : 'x'}`,
  ],
  end: [
    'with the right token, its first letter changed',
    (right: string) => `${right.startsWith('x') ? 'y' : 'x'}${right.slice(1)}`,
  ],
  case: [
    'with the right token in the other case',
    (right: string) =>
      right.replace(/[a-z]/gi, (one) => (/[a-z]/.test(one) ? one.toUpperCase() : one.toLowerCase())),
  ],
} as const satisfies Readonly<Record<string, readonly [string, (right: string) => string | undefined]>>;

type Wrong = keyof typeof WRONG;

function wrongCredentials({ token, bearer }: Credentials, wrong: Wrong): Credentials {
  const [, replaced] = WRONG[wrong];
  return {
    token: token === undefined ? undefined : replaced(token),
    bearer: bearer === undefined ? undefined : replaced(bearer),
  };
}

async function refused(
  { target, leases }: Run,
  ways: readonly Wrong[],
): Promise<Finding[] | typeof NO_TOKEN> {
  if (!target.hasCredentials) {
    return NO_TOKEN;
  }
  const findings: Finding[] = [];
  const { token, bearer } = target.credentials;
  for (const wrong of ways) {
    const changed = wrongCredentials(target.credentials, wrong);
    // A token without letters has no other case.
    if (changed.token === token && changed.bearer === bearer) {
      continue;
    }
    for (const operation of target.operations) {
      const exchange = await askAs(target, operation, leases.make(), wrong);
      findings.push(...expectRefusal(exchange));
    }
  }
  return findings;
}

async function accepted({ target, leases }: Run): Promise<Finding[] | typeof NO_TOKEN> {
  const [operation] = target.operations;
  if (!target.hasCredentials || operation === undefined) {
    return NO_TOKEN;
  }
  const lease = leases.make();
  const wrong = await askAs(target, operation, lease, 'another');
  const right = await askAs(target, operation, lease);
  const given = right.answer;
  const before = wrong.answer;
  // A service may respond to a wrong token with 403, too: then only the message differs.
  if (given?.status === 403 && before?.status === 403 && given.body === before.body) {
    return [{ expected: 'a different answer than to a request with a wrong token', exchange: right }];
  }
  // Other checks report further errors of a request whose token was accepted.
  const isAccepted = given?.status === 400 && before?.status === 401;
  return isAccepted ? [] : expectAnswerTo(right);
}

function askAs(target: Target, operation: Operation, lease: TestLease, wrong?: Wrong): Promise<Exchange> {
  const options = wrong === undefined ? {} : { credentials: wrongCredentials(target.credentials, wrong) };
  const as = wrong === undefined ? 'with the right token' : WRONG[wrong][0];
  return target.ask(operation, lease, `${ASKED[operation]}, ${as}`, options);
}
