/** What single checks make of answers that have more than one reading. The plain mistakes are in wrong-services.ts. */

import { describe, expect, it } from 'vitest';
import type { CheckResult } from '../../src/conformance/check.ts';
import type { Fields } from '../../src/conformance/leases.ts';
import { CHECKS, type ConformanceOptions } from '../../src/conformance/run.ts';
import type { Operation } from '../../src/conformance/target.ts';
import {
  type Answer,
  type Asked,
  asks,
  daysLong,
  type Fault,
  idsOf,
  isReal,
  type Real,
  rawServer,
  rightAnswer,
  runAgainst,
  smallService,
  TOKEN,
  toBeDaysLong,
} from './services.ts';

/** What those that look back are given to look at. */
const LOOKED_BACK_AT: Readonly<Record<string, readonly string[]>> = {
  'message-is-text': ['deny-lease', 'token-wrong'],
  'no-redirect': ['create-network', 'end-twice'],
  'no-content': ['create-network'],
};

/** What a check says of a service with this fault. */
async function resultOf(
  id: string,
  fault: Fault,
  options: Partial<ConformanceOptions> = {},
): Promise<CheckResult> {
  const { url } = await smallService(fault);
  const checks = CHECKS.filter((check) => check.id === id || LOOKED_BACK_AT[id]?.includes(check.id));
  const { results } = await runAgainst(url, { checks, ...options });
  const result = results.find(({ check }) => check.id === id);
  if (result === undefined) {
    throw new Error(`there is no check ${id}`);
  }
  return result;
}

const TOKEN_CHECKS = CHECKS.filter(({ id }) => id.startsWith('token-'));

describe('token-missing and token-wrong', () => {
  const refuses =
    (answer: Answer): Fault =>
    ({ token }) =>
      token === TOKEN ? undefined : answer;

  it.for([400, 401, 403, 404, 500])('take %i for a refusal', async (status) => {
    const { url } = await smallService(refuses({ status }));
    const { results } = await runAgainst(url, { checks: TOKEN_CHECKS });
    for (const id of ['token-missing', 'token-wrong', 'token-right']) {
      expect(results.find(({ check }) => check.id === id)).toMatchObject({ result: 'passed' });
    }
  });

  it.for([200, 201, 202, 204])('do not take %i for a refusal', async (status) => {
    for (const id of ['token-missing', 'token-wrong']) {
      expect((await resultOf(id, refuses({ status }))).result).toBe('failed');
    }
  });

  it.for([
    ['a beginning', (token: string) => TOKEN.startsWith(token)],
    ['what begins with it', (token: string) => token.startsWith(TOKEN)],
    ['another case', (token: string) => token.toLowerCase() === TOKEN.toLowerCase()],
    ['as many letters', (token: string) => token.length === TOKEN.length],
    ['the same but for the beginning', (token: string) => token.slice(1) === TOKEN.slice(1)],
    ['the same but for the end', (token: string) => token.slice(0, -1) === TOKEN.slice(0, -1)],
  ] as const)('find a service that takes %s for the token', async ([, accepts]) => {
    const fault: Fault = (asked) =>
      asked.token && accepts(asked.token) ? rightAnswer({ ...asked, token: TOKEN }) : undefined;
    expect((await resultOf('token-wrong', fault)).result).toBe('failed');
  });

  it('ask with no right token in another case where it has no letters', async () => {
    const digits: Fault = (asked) =>
      rightAnswer({ ...asked, token: asked.token === '123-4' ? TOKEN : undefined });
    expect((await resultOf('token-wrong', digits, { credentials: { token: '123-4' } })).result).toBe(
      'passed',
    );
  });

  it('take no answer at all for none', async () => {
    const hangsUp: Fault = ({ token }) => (token === TOKEN ? undefined : 'hangUp');
    expect((await resultOf('token-wrong', hangsUp)).result).toBe('failed');
  });

  it('ask at each endpoint', async () => {
    const open: Fault = (asked) =>
      asked.operation === 'end' ? rightAnswer({ ...asked, token: TOKEN }) : undefined;
    const { result, findings } = await resultOf('token-missing', open);
    expect(result).toBe('failed');
    expect(new Set(findings.map(({ exchange }) => exchange.operation))).toEqual(new Set(['end']));
  });

  it('send what is missing or wrong, and nothing that is right', async () => {
    const { url, asked } = await smallService();
    await runAgainst(url, { checks: TOKEN_CHECKS });
    const sent = new Set(asked.map(({ token }) => token));
    const wrong = [
      'not-the-token-of-this-run',
      `${TOKEN}x`,
      TOKEN.slice(0, -1),
      'r',
      `${TOKEN.slice(0, -1)}x`,
      `x${TOKEN.slice(1)}`,
    ];
    expect(sent).toEqual(new Set([TOKEN, undefined, '', ...wrong, TOKEN.toUpperCase()]));
  });

  it('are skipped without a token', async () => {
    const open: Fault = (asked) => rightAnswer({ ...asked, token: TOKEN });
    const reason = 'neither --token nor --bearer is given';
    for (const id of ['token-missing', 'token-wrong', 'token-right']) {
      const result = await resultOf(id, open, { credentials: {} });
      expect(result).toMatchObject({ result: 'skipped', reason });
    }
  });

  it('know the bearer token too', async () => {
    const bearer: Fault = (asked) => {
      const { authorization } = asked.request.headers;
      return rightAnswer({ ...asked, token: authorization === 'Bearer secret' ? TOKEN : undefined });
    };
    const { url } = await smallService(bearer);
    const { results } = await runAgainst(url, { credentials: { bearer: 'secret' } });
    expect(results.filter(({ result }) => result === 'failed')).toEqual([]);
    const prefix: Fault = (asked) =>
      asked.request.headers.authorization?.startsWith('Bearer secret')
        ? rightAnswer({ ...asked, token: TOKEN })
        : bearer(asked);
    expect((await resultOf('token-wrong', prefix, { credentials: { bearer: 'secret' } })).result).toBe(
      'failed',
    );
  });
});

describe('token-right', () => {
  const rejects =
    (words: (asked: Asked) => string): Fault =>
    (asked) =>
      asked.operation === 'end'
        ? undefined
        : { status: 403, body: JSON.stringify({ message: words(asked) }) };

  it('takes a lease that is rejected for accepted, when a wrong token is told something else', async () => {
    const words = ({ token }: Asked) => (token === TOKEN ? 'No lease today.' : 'Who are you?');
    expect((await resultOf('token-right', rejects(words))).result).toBe('passed');
  });

  it('is not sure when both are told the same', async () => {
    expect(
      await resultOf(
        'token-right',
        rejects(() => 'No.'),
      ),
    ).toMatchObject({
      result: 'failed',
      findings: [{ expected: 'a different answer than to a request with a wrong token' }],
    });
  });
});

describe('a lease in another form that means the same', () => {
  const created = (holds: (asked: Real) => boolean, status: 204 | 403): Fault => {
    const answer: Answer = { status, body: status === 403 ? '{"message":"?"}' : '' };
    return (asked) => (asks(asked, 'create') && holds(asked) ? answer : undefined);
  };
  const startsLike =
    (form: RegExp) =>
    ({ json }: Real) =>
      form.test(String(json.lease.start_date));

  it.for([
    ['idempotency-key', ({ request }: Real) => request.headers['idempotency-key'] !== undefined],
    ['unknown-fields', ({ json }: Real) => 'x_unknown_text' in json.context],
    ['documented-example', ({ json }: Real) => json.lease.end_date === undefined],
    ['date-with-fraction', startsLike(/[.]\d+$/)],
    ['date-with-offset', startsLike(/[+-]\d\d:\d\d$/)],
    ['date-with-space', startsLike(/ /)],
    ['date-with-space', ({ json }: Real) => / /.test(String(json.lease.before_end_date))],
  ] as const)('is no reason to allow or to reject it: %s', async ([id, holds]) => {
    for (const [status, usual, what] of [
      [204, 403, 'the lease of --deny-lease, '],
      [403, 204, 'a lease, '],
      [403, 204, 'the lease of --allow-lease, '],
    ] as const) {
      const { findings } = await resultOf(id, created(holds, status));
      const found = findings.find(({ exchange }) => exchange.what.startsWith(what));
      expect(found?.expected).toMatch(new RegExp(`^the status ${usual}, as with`));
    }
  });

  it.for([
    ['without its offset', (date: string) => date.slice(0, 19)],
    ['in a zone of its own', (date: string) => date.replace(/T\d\d:\d\d:\d\d$/, '$&+09:00')],
  ] as const)('is not read %s', async ([, read]) => {
    const ignored: Fault = (asked) => {
      if (!asks(asked, 'create')) {
        return undefined;
      }
      const { start_date, end_date } = asked.json.lease;
      const dates = { start_date: read(`${start_date}`), end_date: read(`${end_date}`) };
      return rightAnswer({ ...asked, json: { ...asked.json, lease: { ...asked.json.lease, ...dates } } });
    };
    const denyLease = daysLong(6).replace('07T09', '06T10');
    const { findings } = await resultOf('date-with-offset', ignored, { denyLease });
    expect(findings).toMatchObject([{ exchange: { answer: { status: 204 } } }]);
  });

  it('is left out where the dates of the author do not fit in it', async () => {
    const denyLease = daysLong(9).replaceAll('T09:00:00', 'T09:00:30');
    const { exchanges } = await resultOf('date-with-space', () => undefined, { denyLease });
    expect(exchanges.map(({ what }) => what).filter((what) => what.includes('--deny-lease'))).toEqual([]);
  });
});

it('create-two-reservations fails where the first reservation alone counts', async () => {
  const lease = JSON.parse(daysLong(1));
  lease.lease.reservations = [
    { resource_type: 'network', amount: 9 },
    { resource_type: 'network', amount: 1 },
  ];
  const first: Fault = (asked) =>
    asks(asked, 'create') && asked.json.lease.reservations[0]?.amount === 9
      ? { status: 403, body: '{"message":"One is the limit."}' }
      : undefined;
  const { findings } = await resultOf('create-two-reservations', first, { denyLease: JSON.stringify(lease) });
  expect(findings).toMatchObject([{ expected: 'the status 403, as in the other order' }]);
});

describe('limit', () => {
  /** Allows so many leases at once; an operation of `repeated` counts each time, and with `name` each name once. */
  const counts = (room: number, ...repeated: (Operation | 'name')[]): Fault => {
    const heard = new Set<unknown>();
    const open: unknown[] = [];
    let left = room;
    return (asked) => {
      if (!isReal(asked) || asked.json.context.project_id !== 'climate') {
        return undefined;
      }
      const { operation, request } = asked;
      const { id, name } = asked.json.lease;
      const key = repeated.includes('name') ? name : (request.headers['idempotency-key'] ?? heard.size);
      const identity = operation === 'create' ? key : id;
      const isKnown = operation === 'create' || open.includes(name);
      const counted = (isKnown && !heard.has(identity)) || repeated.includes(operation);
      if (operation === 'create' && counted && left === 0) {
        return { status: 403, body: '{"message":"There is no room."}' };
      }
      if (operation === 'create' || operation === 'end') {
        heard.add(identity);
        left += counted ? { create: -1, end: 1 }[operation] : 0;
        open.push(...(operation === 'create' ? [name] : []));
      }
      return { status: 204 };
    };
  };

  it.for([
    ['counts each lease once', counts(3), { result: 'passed' }],
    [
      'makes room with each end',
      counts(3, 'end'),
      { findings: [{ expected: 'the status 403, because only one lease has ended' }] },
    ],
    [
      'counts a request that is sent again',
      counts(4, 'create'),
      { findings: Array(2).fill({ expected: 'the status 204, as for 4 leases that are sent once' }) },
    ],
    [
      'counts leases of one name once',
      counts(3, 'name'),
      { findings: [{ expected: 'the status 403, because leases of one name are different leases' }] },
    ],
    ['has no limit', counts(99), { reason: expect.stringMatching(/^32 leases/) }],
    ['has no room', counts(0), { reason: expect.stringMatching(/allowed any more$/) }],
    [
      'gives nothing back',
      (asked: Asked) => (asks(asked, 'end') ? { status: 204 } : undefined),
      { reason: 'the end of a lease makes no room for another one' },
    ],
  ] as const)('of a service that %s', async ([, fault, expected]) => {
    expect(await resultOf('limit', fault)).toMatchObject(expected);
  });
});

describe('unknown-fields', () => {
  it('passes where a budget was used up in the meantime', async () => {
    let usedUp = false;
    const budget: Fault = (asked) => {
      usedUp ||= isReal(asked) && 'x_unknown_text' in asked.json;
      return usedUp && isReal(asked) && asked.operation === 'create'
        ? { status: 403, body: '{"message":"used up"}' }
        : undefined;
    };
    expect((await resultOf('unknown-fields', budget)).result).toBe('passed');
  });

  it('sends them at every level', async () => {
    const { url, asked } = await smallService();
    await runAgainst(url, { checks: CHECKS.filter(({ id }) => id === 'unknown-fields') });
    const found = asked.find(({ json }) => json !== undefined && 'x_unknown_text' in json)?.json;
    const [reservation] = found?.lease.reservations ?? [];
    const [allocation] = (reservation?.allocations ?? []) as Fields[];
    for (const level of [found?.context, found?.lease, reservation, allocation]) {
      expect(level).toHaveProperty('x_unknown_object');
    }
  });
});

it('deny-update fails where an update that names one of two reservations is allowed', async () => {
  const update = JSON.parse(toBeDaysLong(9));
  const reservations = [{ resource_type: 'physical:host', max: 1 }, { resource_type: 'network' }];
  update.current_lease.reservations = reservations;
  update.lease.reservations = reservations;
  const counts: Fault = (asked) =>
    asks(asked, 'update') && asked.json.lease.reservations.length === 1 ? { status: 204 } : undefined;
  const { findings } = await resultOf('deny-update', counts, { denyUpdate: JSON.stringify(update) });
  expect(findings).toMatchObject([{ expected: 'the status 403', exchange: { answer: { status: 204 } } }]);
});

it('deny-update fails where an update that gives the lease to another project is allowed', async () => {
  const moves: Fault = (asked) =>
    asks(asked, 'update') && asked.json.lease.project_id !== undefined ? { status: 204 } : undefined;
  expect(await resultOf('deny-update', moves)).toMatchObject({
    findings: [{ expected: 'a status of 300 or more, such as 401', exchange: { answer: { status: 204 } } }],
  });
});

describe('message-is-text', () => {
  const rejects =
    (body: string): Fault =>
    (asked) =>
      rightAnswer(asked).status === 403 ? { status: 403, body } : undefined;

  it.for([
    '',
    'no',
    '"no"',
    'null',
    '["no"]',
    '{}',
    '{"msg":"no"}',
    '{"message":""}',
    '{"message":" "}',
    '{"message":1}',
    '{"message":["no"]}',
    '{"message":"f\ufffdnf Tage"}',
    '<p>no</p>',
  ])('fails for %j', async (body) => {
    const { result, findings } = await resultOf('message-is-text', rejects(body));
    expect({ result, findings: findings.length }).toEqual({ result: 'failed', findings: 1 });
  });

  it('is skipped where nothing was rejected', async () => {
    expect(await resultOf('message-is-text', () => undefined, { denyLease: undefined })).toMatchObject({
      result: 'skipped',
      reason: 'no lease was rejected; pass one with --deny-lease',
    });
  });

  it('looks at no 403 that a wrong token got', async () => {
    const refuses: Fault = ({ token }) => (token === TOKEN ? undefined : { status: 403, body: 'who?' });
    expect((await resultOf('message-is-text', refuses)).result).toBe('passed');
  });
});

describe('what is no request', () => {
  const answersUnreadable =
    (operation: string, answer: Answer): Fault =>
    (asked) =>
      asked.operation === operation && asked.token === TOKEN && asked.json === undefined ? answer : undefined;

  it.for([
    ['is told at on-end with', 'end', 204, 'passed'],
    ['is a yes to an update with', 'update', 204, 'failed'],
    ['is rejected with', 'create', 403, 'passed'],
  ] as const)('%s %s %i: the check has %s', async ([, operation, status, result]) => {
    for (const id of ['invalid-json', 'empty-body', 'not-an-object']) {
      expect((await resultOf(id, answersUnreadable(operation, { status }))).result).toBe(result);
    }
  });
});

describe('no-content', () => {
  const allows =
    (headers: Record<string, string>): Fault =>
    (asked) =>
      rightAnswer(asked).status === 204 ? { status: 204, headers } : undefined;

  it('lets a Content-Length of 0 pass, which many write', async () => {
    expect((await resultOf('no-content', allows({ 'Content-Length': '0' }))).result).toBe('passed');
  });

  it('fails a 204 with Transfer-Encoding', async () => {
    const chunked = 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';
    const create = new URL(await rawServer(chunked));
    const { results } = await runAgainst('http://127.0.0.1', { endpoints: { create }, largeLeaseHosts: 1 });
    expect(results.find(({ check }) => check.id === 'no-content')).toMatchObject({ result: 'failed' });
  });
});

describe('idempotency-key', () => {
  it('fails where the same request with the same key is charged twice', async () => {
    const names = new Set<unknown>();
    const again: Fault = (asked) => {
      const known = asks(asked, 'create') && names.has(asked.json.lease.name);
      names.add(asked.json?.lease?.name);
      return known ? { status: 403, body: '{"message":"One lease is the limit."}' } : undefined;
    };
    expect(await resultOf('idempotency-key', again)).toMatchObject({
      result: 'failed',
      findings: [{ expected: 'the status 204, as the first time' }],
    });
  });

  it('passes where every lease is rejected, with a key and without', async () => {
    const never: Fault = (asked) =>
      asks(asked, 'create') ? { status: 403, body: '{"message":"never"}' } : undefined;
    expect((await resultOf('idempotency-key', never)).result).toBe('passed');
  });
});

it('commit endpoints are asked with the id of the lease', async () => {
  const { url, asked } = await smallService();
  await runAgainst(url, { denyCommit: undefined });
  const commits = asked.filter((one) => isReal(one) && one.operation === 'commitCreate');
  expect(commits).not.toEqual([]);
  expect(commits.every(({ json }) => typeof json?.lease.id === 'string')).toBe(true);
});

it.for([
  ['where none was given', {}, 'pass a token with --token or --bearer'],
  ['where the wrong one was given', { token: 'old' }, 'the service does not accept the token'],
] as const)('a service that asks for a token has one finding %s', async ([, credentials, why]) => {
  const { url, asked } = await smallService();
  const { results } = await runAgainst(url, { credentials });
  const failed = results.filter(({ result }) => result === 'failed');
  expect(failed.map(({ check }) => check.id)).toEqual(['allow-lease']);
  expect(failed[0]?.findings).toMatchObject([{ expected: `the status 204; ${why}` }]);
  expect(results[1]?.reason).toBe(
    'the service has answered every request with 401 since the check allow-lease',
  );
  expect(asked).toHaveLength(1);
});

it('a service that understands no lease is told so once for each kind of request, and of nothing that this does not prove', async () => {
  const { url } = await smallService((asked) =>
    isReal(asked) ? { status: 400, body: '{"lease": "it has no resource_requests"}' } : undefined,
  );
  const report = await runAgainst(url, {
    allowLease: undefined,
    denyLease: undefined,
    denyUpdate: undefined,
    denyCommit: undefined,
  });
  expect(idsOf(report, 'failed').filter((id) => !/^(create|update|end)-/.test(id))).toEqual([
    'documented-example',
    'commit-create',
    'commit-update',
  ]);
  expect(idsOf(report, 'passed')).toEqual([
    'token-missing',
    'token-wrong',
    'token-right',
    'invalid-json',
    'empty-body',
    'not-an-object',
    'no-redirect',
    'no-stack-trace',
    'no-token',
  ]);
  const reasonOf = (id: string) => report.results.find(({ check }) => check.id === id)?.reason;
  expect(reasonOf('unknown-fields')).toBe(
    'create-physical-host has failed, and this differs in one thing only',
  );
  expect(reasonOf('date-without-offset')).toBe('a lease whose dates have an offset is not understood either');
  expect(reasonOf('no-content')).toBe('nothing was answered with 204; pass a lease with --allow-lease');
});

it.each(['invalid-json', 'empty-body', 'not-an-object'])(
  '%s fails a service that answers no lease any more afterwards',
  async (id) => {
    let isBroken = false;
    const fault: Fault = (asked) => {
      isBroken ||= asked.json === undefined && asked.token === TOKEN;
      return isBroken && isReal(asked) ? { status: 400 } : undefined;
    };
    const { url } = await smallService(fault);
    const checks = CHECKS.filter((check) => check.id === id || check.id === 'create-network');
    const { results } = await runAgainst(url, { checks });
    expect(results.map(({ result }) => result)).toEqual(['passed', 'failed']);
  },
);
